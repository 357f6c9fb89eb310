"""The dashboard: all folders below a home on one page."""
