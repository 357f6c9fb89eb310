"""What every crawl of a frontier is made of, whoever reads the replies: `pages` and `jobs` stand on it.

Terms. *Ledger*: the frontier on disk, and what became of every item. *Row*: a line of the file that a crawl writes.
*Watermark*: the length of that file up to which its rows are in the ledger too. *End*: how it went with an item, once
and for all.

A system brings three things of its own: what a reply means (its handler), which items may be asked for (`check` of its
source), and what stands in its folder beside ledger and rows. The order of writing is the same for all: rows first,
then the ledger with the watermark. Killed in between, rows behind the watermark are cut off, and their items are asked
for again.
"""
