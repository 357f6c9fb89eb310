"""The commands that read records back: `sanderling export` and `sanderling show`."""
