"""What was collected: files of rows that only grow, and reading, choosing and exporting what stands in them."""
