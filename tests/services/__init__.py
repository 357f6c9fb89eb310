"""Real services for the tests; `fixtures` is the pytest plugin that gives them out, one file each knows how.

Each is looked for when a test first asks for it:

1. SANDERLING_TEST_POSTGRES, _REDIS, _RABBITMQ, _S3, _CLICKHOUSE or _PROMETHEUS is its URL; silence is an error;
2. on its usual port of this machine, if what listens there speaks the protocol and lets us in;
3. a private one on free ports in a temporary folder, stopped when the session ends;
4. otherwise the tests that asked are skipped, with the reason.

A service that was found is shared with others: tests use unique names and remove what they made.
"""
