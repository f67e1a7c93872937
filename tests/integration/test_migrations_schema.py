"""The migrated schema is the one that the models describe."""

import pytest

from codehub.db.models import Base
from codehub.db.session import connect, create_engine

# Names and definitions as PostgreSQL prints them; the order of columns does not matter.
CATALOGUES = {
    "columns": """
        SELECT table_name || '.' || column_name AS name,
            concat_ws(' ', data_type, is_nullable, column_default, identity_generation) AS definition
        FROM information_schema.columns WHERE table_schema = 'public'
    """,
    "constraints": """
        SELECT conrelid::regclass || '.' || conname AS name, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    """,
    "indexes": "SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE schemaname = 'public'",
}


async def read_catalog(url: str, query: str) -> dict[str, str]:
    connection = await connect(url)
    rows = await connection.fetch(query)
    await connection.close()
    return {row["name"]: row["definition"] for row in rows if "alembic_version" not in row["name"]}


@pytest.mark.parametrize("catalogue", CATALOGUES)
async def test_migrations_and_models_agree(
    database_url: str, empty_database_url: str, catalogue: str
) -> None:
    engine = create_engine(empty_database_url)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    await engine.dispose()
    migrated = await read_catalog(database_url, CATALOGUES[catalogue])
    assert migrated == await read_catalog(empty_database_url, CATALOGUES[catalogue])


async def test_no_index_was_left_invalid(database_url: str) -> None:
    connection = await connect(database_url)
    invalid = await connection.fetch("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid")
    await connection.close()
    assert invalid == []
