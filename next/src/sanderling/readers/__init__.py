"""The pool of reader processes, in which everything that a stranger sent is parsed.

`pool.py` is the side of the crawl, `reader.py` the process, `automatic.py` how many a machine can use. This file
imports nothing, because each reader would load it.
"""
