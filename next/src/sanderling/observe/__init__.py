"""What is shown of a running system, on screens, as metrics and in logs; and how it is controlled from outside."""
