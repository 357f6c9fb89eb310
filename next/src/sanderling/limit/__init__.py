"""Rate limits for hosts: how fast each may be requested, when it is left alone, and when a failure is tried again."""
