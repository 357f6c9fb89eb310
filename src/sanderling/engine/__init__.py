"""The one loop: whether, which and when. A system says what to ask (Source), how (Handler) and where it ends (Sink)."""
