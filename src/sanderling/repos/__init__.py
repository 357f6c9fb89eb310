"""Archive every repo of every host.

Terms:

- **DID**: the name of an account, for as long as it lives; its repo is all that it has published.
- **host**: the base URL of the server that keeps a repo, as we spell it: https://host.example, nothing behind it.
- **directory** (`directory`): which DIDs exist and where. The public one for did:plc is a log of **operations**
  (`plc`); ours is what is left of it when it is folded, one host per DID.
- **segment** (`segments`): an .rca of a few gigabytes with the repos of many. While it grows it is called .part.
- **complete**: a DID that need not be asked for again, since its repo is durable in a segment, or since it failed for
  good. The progress (`stores`) knows which are.
- **cursor**: the DID up to which, in bytewise order, all were seen to.

Tricky bits:

- The order is: the block is durable, then the progress is told. A crash in between leaves a repo in a segment that the
  progress does not know; `Segments.found` says which, and the crawl must tell the progress before it asks for anything.
- Blocks of one `append` are in one segment, and a segment is finalised by the `append` after it was filled, so that
  what the progress may not know yet is always in the .part.
- An operation can be undone: within 72 hours a stronger key may nullify it. The log then says so of the old one, also
  when we have it already, so the last few operations of each DID are kept, and not only the last.
- Directories are written by strangers. An endpoint that is no plain host is refused and counted, and its DID has no
  host then: not the one before, from which the account has moved away.
"""
