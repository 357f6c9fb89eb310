"""Bytes to values and back: repos as hosts send them, and as they are kept.

A repo is everything one account has published. Terms:

- **block**: some bytes, and the **CID** made from their hash that names them (`cid`). Nearly all blocks are DAG-CBOR
  (`cbor`): CBOR with exactly one way to write each value.
- **CAR**: how a repo travels (`car`): a header that names the root, then blocks, each with its CID, in any order.
- **commit**: the root block. It says whose repo this is (`did`), which edition (`rev`), and where the tree begins.
- **MST**: the tree (`mst`), a sorted map of keys to records. Its shape follows from its keys, so two hosts with the
  same records have the same root.
- **key**: `collection/rkey`. A collection is all records of one kind; it has the name of their schema.
- **.rca**: how repos are kept (`rca`, `rca_writer`, `rca_reader`): many in one file, each collection compressed by
  itself. There a **block** is one repo.

`repo.parse_repo` is the whole way from a CAR to collections of JSON; `parsed` says what comes out. It exists twice, in
C and in Python (`repo_python`, with `record` for one record); both give the same bytes, and the same error for the same
fault.

Tricky bits:

- Everything here comes from strangers. A length is compared with what is left before anything is made of that length;
  trees are walked without recursion, rings and shared nodes end the walk; a key is at most 1,024 bytes, since thousands
  of entries may each repeat the beginning of a long one; what is read is bounded as well as what is written, since a
  thousand keys may name one record.
- A fault of structure (framing, hash, commit, tree) makes the whole repo an error. A bad or missing record is counted
  and the others are kept: one broken post must not cost an account.
- Blocks come in no order, and a CAR cut between two frames looks whole: only the walk shows what is missing.
- A prefix in a node that is shorter than it could be is read; one longer than the key before it is an error.
- Key order in the tree is not the order of collections: `a.b.c/x` comes before `a.b/x`.
- `{"$link": …}` in JSON is a link, and a record may have a map that looks just like one. The way back is not unique.
- An .rca that was never finalised is a good file without an index; `rca_writer.repair` cuts a torn tail.
"""
