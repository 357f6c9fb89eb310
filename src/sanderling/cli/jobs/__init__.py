"""The commands for jobs. Each is imported only when it is run."""
