"""The tables of a fleet in PostgreSQL, beside that of leases."""

# Of what is deleted soon after it was written. Else vacuum waits for a fifth of it, and pauses after some pages.
BRISK = ", ".join(
    f"{table}autovacuum_vacuum_{name}"
    for table in ("", "toast.")
    for name in ("scale_factor = 0.02", "threshold = 1000", "cost_delay = 0")
)
TABLES = {
    "fleet_crawl": """CREATE TABLE fleet_crawl (
        name text PRIMARY KEY, scope text NOT NULL UNIQUE, said text NOT NULL, done boolean NOT NULL DEFAULT false)""",
    "fleet_part": f"""CREATE TABLE fleet_part (
        crawl text NOT NULL, part integer NOT NULL, idle bigint NOT NULL DEFAULT -1,
        fetched bigint NOT NULL DEFAULT 0, waiting bigint NOT NULL DEFAULT 0, asked bigint NOT NULL DEFAULT 0,
        failed bigint NOT NULL DEFAULT 0, snapshot bigint NOT NULL DEFAULT 0, token text NOT NULL DEFAULT '',
        key text NOT NULL DEFAULT '', limiter bytea NOT NULL DEFAULT '', news bytea NOT NULL DEFAULT '',
        PRIMARY KEY (crawl, part)) WITH (fillfactor = 50, {BRISK})""",
    "fleet_log": f"""CREATE TABLE fleet_log (
        crawl text NOT NULL, part integer NOT NULL, number bigint NOT NULL, token text NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (crawl, part, number)) WITH ({BRISK})""",
    "fleet_segment": """CREATE TABLE fleet_segment (
        crawl text NOT NULL, part integer NOT NULL, number bigint NOT NULL, key text NOT NULL, size bigint NOT NULL,
        PRIMARY KEY (crawl, part, number))""",
    "fleet_inbox": f"""CREATE TABLE fleet_inbox (
        crawl text NOT NULL, part integer NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, body bytea NOT NULL,
        PRIMARY KEY (crawl, part, id)) WITH ({BRISK})""",
    "fleet_cookie": """CREATE TABLE fleet_cookie (
        crawl text NOT NULL, part integer NOT NULL, key bytea NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (crawl, part, key))""",
    "fleet_quota": """CREATE TABLE fleet_quota (
        crawl text NOT NULL, quota text NOT NULL, free float8 NOT NULL DEFAULT 0, quiet float8 NOT NULL DEFAULT 0,
        PRIMARY KEY (crawl, quota)) WITH (fillfactor = 50)""",
    "fleet_agreed": """CREATE TABLE fleet_agreed (
        crawl text NOT NULL, name text NOT NULL, value text NOT NULL, PRIMARY KEY (crawl, name))""",
    "fleet_worker": """CREATE TABLE fleet_worker (
        crawl text NOT NULL, name text NOT NULL, machine text NOT NULL, release text NOT NULL,
        parts integer NOT NULL DEFAULT 0, seen timestamptz NOT NULL, draining boolean NOT NULL DEFAULT false,
        weight integer NOT NULL DEFAULT 100, late float8 NOT NULL DEFAULT 0,
        report text NOT NULL DEFAULT '', PRIMARY KEY (crawl, name)) WITH (fillfactor = 50)""",
}
# They are packed already.
PACKED = (
    "ALTER TABLE fleet_log ALTER COLUMN body SET STORAGE EXTERNAL",
    "ALTER TABLE fleet_inbox ALTER COLUMN body SET STORAGE EXTERNAL",
)
OF_CRAWL = tuple(name for name in TABLES if name != "fleet_crawl")  # that have rows of a crawl
