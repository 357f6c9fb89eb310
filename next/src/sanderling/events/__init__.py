"""Events: batches that crawlers announce by messages become rows of posts and errors.

A loop of its own takes messages, fetches their batches, has them read and analysed in readers, stores the rows in one
transaction, and acknowledges. `consume.py` has the table of what happens to a message.
"""
