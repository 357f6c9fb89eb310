"""The ledger's tables and hot statements in PostgreSQL. The same in SQLite stand in `sqlite_ledger`."""

from sanderling.stores.rows import ENDED, FRONTIER, MEMORY

MARK = "sanderling ledger"  # the comment of a schema of ours
BLOCK = 1_000  # numbers of URLs that a process gets at once
# `frontier` and `host` change all the time: vacuumed early, without pauses.
_BUSY = """autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_enabled = on"""
TABLES = (
    """CREATE TABLE crawl (format int, plan bytea, run int, finished bool, salt bytea, state bytea,
        crc bigint)""",
    # 16 bytes without a length; what they are called does not matter.
    "CREATE TABLE seen (key uuid PRIMARY KEY)",
    f"""CREATE TABLE frontier (host bigint, kind smallint, turn bigint, id bigint, url text, key uuid, depth int,
        priority bigint, failures int, function text, data bytea, code text, crc bigint,
        PRIMARY KEY (host, kind, turn, id)) WITH ({_BUSY})""",
    """CREATE TABLE ended (key uuid PRIMARY KEY, host bigint, name text, url text, depth int, state text, code text,
        status int, detail text, requests int, function text, priority bigint, data bytea, crc bigint)""",
    """CREATE TABLE memory (key uuid PRIMARY KEY, etag text, modified text, digest bytea, seen float8, every float8,
        crc bigint)""",
    f"""CREATE TABLE host (host bigint PRIMARY KEY, partition smallint, name text, due float8, parked float8,
        stored bigint NOT NULL DEFAULT 0) WITH (fillfactor = 70, {_BUSY})""",
    "CREATE INDEX host_due ON host (due, host) WHERE due IS NOT NULL",
    "CREATE TABLE document (host bigint, what smallint, body bytea, crc bigint, PRIMARY KEY (host, what))",
    """CREATE TABLE tally (process bigint, state text, code text, n bigint, PRIMARY KEY (process, state, code))
        WITH (fillfactor = 50)""",
    """CREATE TABLE row_files (process bigint, file text, length bigint, rows bigint, crc bigint,
        PRIMARY KEY (process, file)) WITH (fillfactor = 50)""",
    "CREATE TABLE forgotten (hash uuid PRIMARY KEY)",
    # A process commits while its row is here; who finds it late deletes the row, and so fences it off.
    "CREATE TABLE process (id bigint PRIMARY KEY, run int, until timestamptz) WITH (fillfactor = 50)",
    # Who requests from the hosts of a partition. Free where the process has no row.
    "CREATE TABLE lease (partition smallint PRIMARY KEY, process bigint)",
    # Hosts of others for which we found something. No unique key: what is being deleted would swallow what is new.
    "CREATE TABLE wakeups (partition smallint, host text)",
    f"CREATE SEQUENCE frontier_ids INCREMENT {BLOCK}",
    "CREATE SEQUENCE process_ids",
)

# Whose the schema is; NULL if there is nothing in it.
WHOSE = """SELECT CASE WHEN obj_description(oid, 'pg_namespace') = $2 THEN 'ours'
    WHEN EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = n.oid) THEN 'another''s' END
    FROM pg_namespace n WHERE nspname = $1"""
# Who works. Only the server's clock counts: those of two machines differ.
REGISTER = """INSERT INTO process VALUES (nextval('process_ids'), $1, clock_timestamp() + $2::float8 * interval '1 s')
    RETURNING id"""
BEAT = """UPDATE process SET until = clock_timestamp() + $2::float8 * interval '1 s' WHERE id = $1
    RETURNING (SELECT count(*) FROM process)"""
# Not behind a commit that is being made: its process is not late yet.
REAP = """DELETE FROM process WHERE id IN
    (SELECT id FROM process WHERE until < clock_timestamp() FOR UPDATE SKIP LOCKED)"""
# What a dead process has locked stays locked while its server waits for the rest of a message, which no timeout ends.
# $1 stands before the numbers of processes in the names of their sessions.
END_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE usename = current_user AND application_name LIKE $1 || ' %' AND split_part(application_name, ' ', 3) NOT IN
    (SELECT id::text FROM process WHERE until > clock_timestamp() - $2::float8 * interval '1 s')"""
# Locks our row against whoever would fence us off before the commit is made.
FENCE = "SELECT c.run FROM process p, crawl c WHERE p.id = $1 FOR KEY SHARE"
# The same, and no commit of another process is being made meanwhile.
FENCE_ALONE = "SELECT c.run FROM process p, crawl c WHERE p.id = $1 FOR KEY SHARE OF p FOR UPDATE OF c"
# Waits until the server has ended our old session, whichever way.
COMMITTED = "SELECT 1 FROM process WHERE id = $1 FOR UPDATE"
# A partition is free if its process has no row: asked under a lock, since the statement would ask its old snapshot.
LOCK_LEASES = "LOCK TABLE lease IN EXCLUSIVE MODE"
CLAIM = """INSERT INTO lease SELECT unnest($2::smallint[]), $1::bigint ON CONFLICT (partition)
    DO UPDATE SET process = $1 WHERE lease.process = $1 OR NOT EXISTS (SELECT 1 FROM process WHERE id = lease.process)
    RETURNING partition"""
GIVE_BACK = "DELETE FROM lease WHERE process = $1 AND partition = ANY($2::smallint[])"
WAKE = "INSERT INTO wakeups SELECT unnest($1::smallint[]), unnest($2::text[])"
WOKEN = """DELETE FROM wakeups w USING lease l WHERE l.partition = w.partition AND l.process = $1
    RETURNING w.host"""

# What is next.
HOSTS = """SELECT h.due, h.host, h.name, h.parked, h.stored, h.partition FROM host h
    LEFT JOIN lease l USING (partition) LEFT JOIN process p ON p.id = l.process
    WHERE h.due < 'Infinity' AND (h.due, h.host) > ($1, $2) AND (h.parked IS NULL OR h.due <= $3)
    AND (l.process = $5 OR ($6 AND p.id IS NULL)) ORDER BY h.due, h.host LIMIT $4"""
# Whether others have hosts with something that waits for nobody but them.
OTHERS_WORK = """SELECT 1 FROM host h JOIN lease l USING (partition) JOIN process p ON p.id = l.process
    WHERE p.id <> $1 AND h.due < 'Infinity' AND h.parked IS NULL
    AND EXISTS (SELECT 1 FROM frontier WHERE host = h.host AND kind <> $2 AND turn < $3) LIMIT 1"""
TAKE = f"""SELECT f.* FROM unnest($2::smallint[]) WITH ORDINALITY k (kind, place), LATERAL
    (SELECT {FRONTIER} FROM frontier WHERE host = $1 AND kind = k.kind AND turn <= $3 ORDER BY turn, id LIMIT $4) f
    ORDER BY k.place, f.turn, f.id"""
NEXT_TURNS = """SELECT n.host, min(t.turn) FROM unnest($1::bigint[]) n (host), unnest($2::smallint[]) k (kind), LATERAL
    (SELECT turn FROM frontier WHERE host = n.host AND kind = k.kind AND turn > $3 AND turn < $4
    ORDER BY turn LIMIT 1) t GROUP BY n.host"""
LOCK_HOSTS = "SELECT 1 FROM host WHERE host = ANY($1::bigint[]) ORDER BY host FOR NO KEY UPDATE"
SET_DUE = """UPDATE host h SET due = v.due FROM unnest($1::bigint[], $2::float8[]) v (host, due)
    WHERE h.host = v.host AND h.due IS DISTINCT FROM v.due AND h.parked IS NULL"""

# What came of it. Rows come in the order of their keys, so that two processes never wait for each other in a circle.
KNOWN_OF = "SELECT key FROM seen WHERE key = ANY($1::uuid[])"
FORGOTTEN_OF = "SELECT hash FROM forgotten WHERE hash = ANY($1::uuid[])"
REMOVE = """DELETE FROM frontier f USING unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[])
    g (host, kind, turn, id) WHERE (f.host, f.kind, f.turn, f.id) = (g.host, g.kind, g.turn, g.id)"""
LEARN = "INSERT INTO seen SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING RETURNING key"
END = f"""INSERT INTO ended ({ENDED}) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[],
    $5::int[], $6::text[], $7::text[], $8::int[], $9::text[], $10::int[], $11::text[], $12::bigint[], $13::bytea[],
    $14::bigint[])"""
REMEMBER = f"""INSERT INTO memory ({MEMORY}) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[],
    $5::float8[], $6::float8[], $7::bigint[]) ON CONFLICT (key) DO UPDATE SET etag = excluded.etag,
    modified = excluded.modified, digest = excluded.digest, seen = excluded.seen, every = excluded.every,
    crc = excluded.crc"""
MEET_HOSTS = """INSERT INTO host (host, partition, name, due, stored)
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::float8[], $5::bigint[])
    ON CONFLICT (host) DO UPDATE SET stored = host.stored + excluded.stored,
    due = CASE WHEN host.parked IS NULL THEN least(host.due, excluded.due) ELSE host.due END
    WHERE excluded.stored <> 0
    OR (host.parked IS NULL AND excluded.due IS NOT NULL AND (host.due IS NULL OR host.due > excluded.due))"""
DOCUMENT = """INSERT INTO document SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bytea[], $4::bigint[])
    ON CONFLICT (host, what) DO UPDATE SET body = excluded.body, crc = excluded.crc"""
PARK = """UPDATE host h SET parked = v.parked, due = v.due
    FROM unnest($1::bigint[], $2::float8[], $3::float8[]) v (host, parked, due) WHERE h.host = v.host"""
COUNT = """INSERT INTO tally SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::bigint[])
    ON CONFLICT (process, state, code) DO UPDATE SET n = tally.n + excluded.n"""
FILE = """INSERT INTO row_files SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    ON CONFLICT (process, file) DO UPDATE SET length = excluded.length, rows = excluded.rows, crc = excluded.crc"""
# Of hosts that have something new: who requests from them, if anybody.
OWNERS = """SELECT h.name, h.partition, p.id FROM host h LEFT JOIN lease l USING (partition)
    LEFT JOIN process p ON p.id = l.process WHERE h.host = ANY($1::bigint[]) AND h.parked IS NULL"""
NOTHING_WAITS = """SELECT NOT EXISTS (SELECT 1 FROM frontier WHERE kind <> $1 AND turn < $2
    AND host NOT IN (SELECT host FROM host WHERE parked IS NOT NULL))"""
