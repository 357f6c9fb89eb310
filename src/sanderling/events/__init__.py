"""Crawled batches become rows, errors and alarms: a message says where a batch is, and each item ends in one row."""
