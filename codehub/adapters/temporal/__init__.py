"""Temporal as a client uses it: wakes, schedules, histories and search attributes."""
