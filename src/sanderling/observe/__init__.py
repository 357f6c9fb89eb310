"""What can be seen of a running system: metrics, logs and snapshots."""
