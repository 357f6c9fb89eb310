"""Simulated upstreams that ship with the product: what the demo, the benchmarks and the tests ask."""
