"""Benchmarks on real servers; docs/performance.md has the results."""
