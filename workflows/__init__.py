"""Temporal workflows: they read like the runbook."""
