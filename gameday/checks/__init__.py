"""The invariants that a game checks, while faults happen and afterwards."""
