"""One file per revision, in the order of their names."""
