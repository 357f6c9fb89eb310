"""Jobs: crawls that users write in a file of their own."""
