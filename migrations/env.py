"""The environment that Alembic runs for every command; `migrations.runner` passes the connection."""

from alembic import context

connection = context.config.attributes["connection"]

# One transaction per revision: if one fails, the earlier ones stay.
context.configure(connection=connection, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
