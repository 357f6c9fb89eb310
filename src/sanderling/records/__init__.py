"""Records out: whatever a system collected, read back and written elsewhere.

Terms:

- A *source* is the folder of a system. Its `records.py` gives the records in an order that never changes, each with
  the *position* behind it (`stores/record_source.py`).
- A *target* is what records are written to: a file, a folder of parts, a database. It keeps the *mark* of what it
  holds: how many records, from which folder, up to which position.
- Records and mark are durable together, or neither is. So an export that was killed goes on where it was, and what is
  new since the last one is what stands behind the mark. Resuming and `--new` are the same thing.
"""
