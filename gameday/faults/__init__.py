"""The faults that a game injects."""
