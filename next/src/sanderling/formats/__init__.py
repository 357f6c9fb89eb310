"""Formats that others read and write: CARs, DAG-CBOR, the Merkle search tree, `.rca` archives, events of crawlers."""
