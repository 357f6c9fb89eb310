"""What strangers send: pages, robots.txt and sitemaps, read into plain values."""
