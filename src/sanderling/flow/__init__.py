"""Memory budget and threads: how many bytes may be held at once, and where slow work is done."""
