"""Database: models without behaviour, migrations' target, query functions."""
