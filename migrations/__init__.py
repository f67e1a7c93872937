"""Alembic migrations: from the M1 schema to today's."""
