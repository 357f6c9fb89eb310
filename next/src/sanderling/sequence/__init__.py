"""Follow APIs whose ids only grow: each record once, holes known and asked again, at the head without a flood."""
