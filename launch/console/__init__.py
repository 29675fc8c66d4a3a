"""What a person sees of a command, and how it ends, on any terminal and on none."""
