"""Archives of ATProto repos: every account of every host, in segments of the format `.rca`, as seed 001 has them.

Terms. A *directory* says which DIDs there are and at which host each is. The *feed* reads it page by page into the
ledger, where DIDs wait, each as the address HOST/DID. A *repo* is fetched as a CAR, parsed in a reader process into a
*block*, and appended to a *segment*. An account that is deleted, taken down or deactivated is *gone*: it has a
*tombstone*, which hides what was archived of it before.
"""
