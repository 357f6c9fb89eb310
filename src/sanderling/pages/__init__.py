"""Crawl documents politely, with nothing lost: every URL that is found ends in exactly one way, and that is on disk.

Terms. *URL*: always the normal one, as `urls.normalise` spells it; *known* once it is in *scope*, which
is a set of hosts and a depth. *Seed*: a URL that somebody gave, at depth 0. *Frontier*: the known URLs that wait.
*Ledger*: the frontier on disk, and what became of every URL. *Row*: what is kept of one. *Watermark*: the length of
pages.jsonl up to which its rows are in the ledger too. *End*: how it went with a URL, once and for all: fetched,
unchanged, moved, refused, failed, left or left out.

Tricky bits. A redirect is an end: its target is a URL of its own, at the same depth, so that scope and robots.txt are
asked for each hop and nothing is fetched twice. A robots.txt that could not be read forbids everything, for now; one
that is not there forbids nothing. Bodies and rows are on disk before the ledger says so: after a kill, what was in
flight is asked once more, and what stands behind the watermark is cut off. Links, sitemaps and robots.txt are written
by strangers: each is read within limits of size and time, and raises nothing but what its reader names.
"""
