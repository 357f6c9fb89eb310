"""Collects every record from sites and APIs: as fast as each host allows, never faster, losing nothing."""
