"""Temporal, as everybody but a worker sees it: wake a workspace, set up schedules and search attributes."""
