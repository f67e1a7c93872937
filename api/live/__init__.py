"""Live updates: one Redis subscription per process feeds every open event stream."""
