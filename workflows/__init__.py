"""Temporal workflows."""
