"""The simulated worlds of `sanderling world`. Each is imported only when it is served."""
