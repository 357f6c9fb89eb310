"""One file per remote API: how to ask it, and what its answers mean. Pure: no network, no clock."""
