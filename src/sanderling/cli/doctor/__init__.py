"""What `sanderling doctor` checks, a file for each kind of thing."""
