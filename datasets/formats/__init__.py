"""The formats of files and folders that `--data` takes, a module each."""
