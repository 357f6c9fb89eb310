"""The demos of `sanderling demo`. Each is imported only when it is run."""
