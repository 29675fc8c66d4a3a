"""Arrays in, clients out: loaders, partitioners, client files and device profiles."""
