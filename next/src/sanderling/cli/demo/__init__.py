"""`sanderling demo`: every system at work on a small upstream of its own, and the proof that nothing is missing."""
