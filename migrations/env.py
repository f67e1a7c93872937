"""Alembic runs this file for every command; `migrations.runner` has put the connection in place."""

from alembic import context

connection = context.config.attributes["connection"]

# One transaction per revision: a revision that fails leaves those before it done.
context.configure(connection=connection, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
