"""How work moves: whose turn it is, and how much of it may be in memory."""
