"""Temporal activities: each makes one idempotent change through a port."""
