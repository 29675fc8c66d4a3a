"""Tables of any file: columns, what each is for, and the store that they are written into."""
