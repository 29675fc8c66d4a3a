"""Arrays in, clients out: loaders, partitioners, client shards and device profiles."""
