"""Formats that others read and write: CARs, DAG-CBOR, the Merkle search tree, and `.rca` archives."""

"""Formats that others read and write, pure: archives, repositories, envelopes of events."""
