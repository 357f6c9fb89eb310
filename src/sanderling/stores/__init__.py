"""What outlives a process, one file per outside system, behind small protocols (`ports`).

Terms. A **store** keeps what a system must remember: how far a crawl of repos has come (**progress**), what was in
them (`clickhouse`: a server, or the engine within our own process), the records of ids (**instances**), and which URLs
are known, which wait and how the others ended (**frontier**), by partition of their hosts. A **queue**
holds letters between those who collect and those who store (`queue`, `sqlite_queue`, `rabbitmq`).
**Durable** means on disk (`durable`): what a method has returned from survives kill -9, and with SQLite the power too.
Redis is as durable as whoever runs it has set it up to be: without its append-only file, a crash of the server forgets.

Tricky bits:

- Every change may be made again. A caller whose connection broke does not know whether the server had heard, so it asks
  once more, and totals must not count twice: a DID counts when it becomes archived, not when somebody says so.
- One writer at a time. Nothing here keeps two crawls from one store; the lock on the folder of segments does.
"""
