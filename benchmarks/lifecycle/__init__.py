"""Lifecycle operations: overhead, throughput, transfers and fairness."""
