"""Benchmarks on the real parts; docs/performance.md has results and how to read them."""
