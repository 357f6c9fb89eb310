"""`sanderling top`: the facts of all systems, live in a terminal."""
