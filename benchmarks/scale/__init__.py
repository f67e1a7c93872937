"""Sweeps and queries with many parked workspaces."""
