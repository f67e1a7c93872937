"""Lifecycle operations: overhead, throughput, transfers, fairness."""
