"""Live updates: one subscription per process, shared by every open stream."""
