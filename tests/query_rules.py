"""Which statements may read a whole table: those of tables that stay small, and those that few execute.

Whoever adds one says why it runs less than once a minute, or why it reads only a few rows all the same.
"""

# Tables that have a row, or as many as there are kinds of something, whatever is known, waits or was missed.
SMALL = {
    "meta": "pages, jobs: one row for each fact of the crawl",
    "code": "pages, jobs: one row for each reason",
    "reader": "jobs: one row for each function that reads replies",
    "book": "queue: one row",
    "letter_tally": "queue: one row for each state",
    "missed_tally": "sequence: one row for each reason",
    "crawl": "sequence, repos: one row",
    "tally": "repos: one row for each reason",
    "directory": "repos: one row",
    "instance_store": "sequence: one row for each version",
    "polling_meta": "polling: one row for each fact of the store",
    "polling_settings": "polling: what people have set",
    "polling_touched": "polling: what people have edited by hand since the last look at it, which removes it",
    "every": "polling: one row for each kind of target; an index leads from one to the next",
    "analytics_version": "events: one row",
    "system": "dashboard: one row for each system of a home, of which there are at most 200",
    "sqlite_schema": "the tables of a file",
    "sqlite_master": "the tables of a file",
}

START = "once, when a crawl begins or a store is opened"
END = "once, when a crawl ends"
ASKED = "a person asks, by a command or over the API"
BOUNDED = "reads no more rows than the LIMIT within it lets through"
OWN_INDEX = "its index has nothing else, and LIMIT ends it"
CLOCK = "when the clock was set back, and when a process begins to poll"
BY_HAND = "when a person has edited rows by hand"
DISCOVERY = "discovery compares all targets with the list that it has just read from the source"
SELDOM = "once a minute where there are many targets: PollingWatch"

# By a regular expression that is found in the statement, on one line.
MAY_READ_ALL = {
    r"FROM url NOT INDEXED WHERE url.id > \?": "counts what one commit has added",
    r"SELECT end, code, count\(\*\) FROM url": START,
    r"SELECT end, count\(\*\) FROM url GROUP BY end": ASKED + " to verify a folder",
    r"FROM url WHERE end = (0|\?) GROUP BY host": START,
    r"FROM url WHERE end > 0$": START,
    r"FROM earlier.remembered": START,
    r"(DELETE|SELECT id, detail) FROM failure WHERE id IN \(SELECT id FROM url WHERE end = \?\)": START,
    r"UPDATE url SET end = 0, code = 0 WHERE end = \?": START,
    r"INSERT OR IGNORE INTO ranked SELECT url.host": START,
    r"FROM ranked GROUP BY host, priority": START,
    r"UPDATE url SET end = 6 WHERE end = 0": END,
    r"FROM failure JOIN url": END,
    r"FROM aside JOIN host": END,
    r"DELETE FROM again WHERE host NOT IN \(SELECT host FROM aside\)": END,
    r"FROM url INDEXED BY url_waiting CROSS JOIN host": ASKED,
    r"FROM again JOIN code ON": ASKED,
    r"FROM host JOIN (aside|again) ON": ASKED,
    r"UPDATE host SET partition = partition_of": START + ", if it is of a version that had no partitions",
    r"INSERT INTO \w+_tally SELECT": START + ", if it is of a version that had no such counts",
    r"FROM missed WHERE low > \? AND coalesce": ASKED,
    r"FROM missed WHERE low >= coalesce\(\(SELECT max\(low\)": "reads at most one range in vain",
    r"FROM did INDEXED BY did_due WHERE .* ORDER BY due, failures, did LIMIT": OWN_INDEX,
    r"^SELECT count\(\*\) FROM aside$": ASKED + ", or a crawl of repos begins or ends",
    r"FROM aside ORDER BY due, host LIMIT": OWN_INDEX,
    r"^UPDATE did SET due = 0 WHERE complete = 0$": START + ", if it is of a version that had passes",
    r"SELECT coalesce\(sum\(dids\), 0\) FROM tally": START + ", if it is of a version that had passes",
    r"FROM missed WHERE coalesce\(\?, reason\) = reason": ASKED,
    r"FROM part ORDER BY low$": ASKED + " to import ids",
    r"\(SELECT count\(\*\) FROM instance\)": ASKED,
    r"^SELECT id FROM \"\w+\" ORDER BY id LIMIT 20000": ASKED,
    r"FROM polling_targets WHERE source_id = \? LIMIT 1": ASKED,
    r"FROM polling_changes WHERE key = \? OR source_id = \?": ASKED,
    r"FROM crawl_errors WHERE event_id = \? OR content_id = \?": ASKED,
    r"FROM post_analytics WHERE post_id = \? ORDER BY id LIMIT 1000": ASKED,
    r"^SELECT post_id FROM post_analytics ORDER BY id DESC LIMIT 20000": ASKED,
    r"^SELECT name FROM host ORDER BY name LIMIT": ASKED,
    r"FROM processed_events AS later WHERE": "an export reads all posts, a page at a time",
    r"^UPDATE \".+\" SET .* (exact_json|CASE)": "an export whose column becomes JSON, which it does once",
    r"^INSERT INTO (record|arrival) .* FROM instance": "once, when a store of an earlier release is opened",
    r"^DELETE FROM (raw_)?instance ": "once, when a store of an earlier release is opened",
    r"player_count IS NULL AND activity_hash IS NULL": "once, when a store of an earlier release is opened",
    r"SELECT max\(instance_id\) FROM instance\)": START + "; the last entry of the primary key",
    r"^SELECT [^(]* FROM (instance|post_analytics|crawl_errors)$": "a demo compares all with its world when it ends",
    r"^UPDATE post_analytics SET project(_id)? = ": "once, when a database moves between the first two revisions",
    r"FROM sqlite_schema\) FROM pragma": START,
    r"FROM pg_namespace": START,
    r'^DELETE FROM ([\w.]+\.)?"?\w+"?$': ASKED + " to remove everything",
    r"^SELECT \(SELECT count\(\*\) FROM polling_targets": SELDOM,
    r"^SELECT count\(\*\) FILTER .* FROM polling_targets$": SELDOM,
    r"SELECT count\(\*\) FROM \(SELECT 1 FROM polling_targets WHERE \w+ = \? LIMIT": BOUNDED,
    r"FROM polling_targets INDEXED BY polling_targets_(name|event|until) ": ASKED,
    r"FROM polling_targets WHERE .* ORDER BY next_due, id LIMIT \d": ASKED,
    r"FROM polling_targets INDEXED BY polling_targets_idle ": ASKED,
    r"FROM polling_targets INDEXED BY polling_targets_due ": OWN_INDEX,
    r"FROM polling_targets WHERE event > \?1 ORDER BY event, kind LIMIT 1": BOUNDED,
    r"FROM polling_targets ORDER BY id$": DISCOVERY,
    r"SELECT DISTINCT event, kind FROM polling_targets": START,
    r"SELECT event, kind FROM polling_targets ORDER BY event, kind LIMIT 1": BOUNDED,
    r"SELECT 1 FROM polling_edits UNION ALL .* LIMIT 1": BOUNDED,
    r"FROM polling_edits AS edit .* LIMIT": BOUNDED,
    r"UPDATE polling_targets SET next_due = (next_due \+|\?1 WHERE)": CLOCK,
    r"WHERE next_due - \$1 > greatest": CLOCK,
    r"FROM polling_targets ORDER BY id FOR NO KEY UPDATE\) AS locked": CLOCK,
    r"UPDATE polling_targets SET promote = (\?|\(SELECT seconds FROM asked\)) WHERE": ASKED,
    r"SET promote = coalesce\(promote, 0\), etag = ''": BY_HAND,
    r"sum\(octet_length\(.* FROM polling_changes WHERE seq > \$1 ORDER BY seq LIMIT": BOUNDED,
    r"WHERE event = \$1 AND id > \$2 ORDER BY id LIMIT": ASKED,
    # No source of ours asks by such a column. For one that does, SQLite gets an index and PostgreSQL has none.
    r'^SELECT id FROM \S+ WHERE "(name|select)" = ANY': "only sources of the tests",
    r"^SELECT count\(\*\) FROM (post_analytics|crawl_errors|processed_events) WHERE": ASKED,
    r"FROM (post_analytics|crawl_errors) WHERE .* LIMIT \S+ OFFSET": ASKED,
    r"SELECT error_code, count\(\*\) FROM crawl_errors": ASKED,
    r"SELECT (overall_sentiment, risk_level|keyword, aspect), .*count\(\*\)": ASKED,
    r"AS day, overall_sentiment, count\(\*\)": ASKED,
    r"FROM post_comments WHERE post_id = \S+ ORDER BY likes DESC": ASKED,
    r"^UPDATE processed_events .* IN \( WITH found AS \(SELECT event_id FROM processed_events": ASKED,
    r"^DELETE FROM processed_events .* ORDER BY processed_at, event_id LIMIT": OWN_INDEX,
    r"FROM \(SELECT \* FROM outbox WHERE number > \S+ ORDER BY number LIMIT": BOUNDED,
    r"FROM \(SELECT 1 FROM outbox LIMIT \d+\)": BOUNDED,
}
