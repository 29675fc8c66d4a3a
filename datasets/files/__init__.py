"""What people hold: files and folders in the formats of the field, each read by a module of its own."""
