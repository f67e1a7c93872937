"""Temporal activities: one idempotent change each, through a port."""
