"""A database as M1 left it: recognize it, bring its tables into the shape of 0001, and stamp it."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from migrations.errors import MigrationRefused

logger = logging.getLogger(__name__)

REVISION = "0001_m1"
TIME = "timestamp with time zone"


@dataclass(frozen=True)
class Column:
    """A column of 0001; one that is optional or has a default may be missing."""

    type: str
    default: str | None = None
    optional: bool = False


TABLES: Mapping[str, Mapping[str, Column]] = {
    "users": {
        "id": Column("uuid"),
        "username": Column("text"),
        "password_hash": Column("text"),
        "created_at": Column(TIME, "now()"),
    },
    "sessions": {
        "id": Column("uuid"),
        "user_id": Column("uuid"),
        "created_at": Column(TIME, "now()"),
        "expires_at": Column(TIME),
        "revoked_at": Column(TIME, optional=True),
    },
    "workspaces": {
        "id": Column("uuid"),
        "owner_user_id": Column("uuid"),
        "name": Column("text"),
        "description": Column("text", optional=True),
        "memo": Column("text", optional=True),
        "image_ref": Column("text"),
        "instance_backend": Column("text"),
        "storage_backend": Column("text"),
        "home_store_key": Column("text"),
        "home_ctx": Column("jsonb", optional=True),
        "status": Column("text"),
        "created_at": Column(TIME, "now()"),
        "updated_at": Column(TIME, "now()"),
        "deleted_at": Column(TIME, optional=True),
    },
}

# How a column of another type is read; a type that is not here is not M1's.
CONVERSIONS = {
    ("character varying", "text"): "{0}::text",
    ("character", "text"): "{0}::text",
    ("USER-DEFINED", "text"): "{0}::text",
    ("character varying", "uuid"): "{0}::uuid",
    ("character", "uuid"): "{0}::uuid",
    ("text", "uuid"): "{0}::uuid",
    ("timestamp without time zone", TIME): "{0} AT TIME ZONE 'UTC'",
    ("json", "jsonb"): "{0}::jsonb",
}

STATUSES = ("CREATED", "PROVISIONING", "RUNNING", "STOPPING", "STOPPED", "DELETING", "ERROR", "DELETED")
CONSTRAINTS = {
    "uq_users_username": ("users", "UNIQUE (username)"),
    "fk_sessions_user_id_users": (
        "sessions",
        "FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE",
    ),
    "fk_workspaces_owner_user_id_users": (
        "workspaces",
        "FOREIGN KEY (owner_user_id) REFERENCES users (id)",
    ),
    "ck_workspaces_status": ("workspaces", f"CHECK (status IN {STATUSES})"),
}
INDEXES = {
    "ix_workspaces_owner_user_id": "workspaces (owner_user_id)",
    "ix_sessions_user_id": "sessions (user_id)",
}
# Later revisions make these, so they must not be there yet.
NOT_OF_M1 = ("api_tokens", "archives", "workspace_events", "idempotency_keys", "workspace_usage")
INVALID_VALUE = "22"
# Integrity constraint violation, and feature not supported: a column that a view uses cannot be altered.
NOT_TO_BE_CHANGED = ("23", "0A")

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable = 'NO' AND column_default IS NULL
    AND NOT (is_identity = 'YES' OR is_generated = 'ALWAYS') AS demanded
FROM information_schema.columns WHERE table_schema = current_schema()
"""
# Every rule but the primary keys: from here on, ours hold.
RULES = """
SELECT conrelid::regclass::text AS table_name, conname FROM pg_constraint
WHERE conrelid = ANY(CAST(:tables AS regclass[])) AND contype IN ('c', 'f', 'u', 'x') ORDER BY contype DESC
"""
UNIQUE_INDEXES = """
SELECT indexrelid::regclass::text FROM pg_index
WHERE indrelid = ANY(CAST(:tables AS regclass[])) AND indisunique AND NOT indisprimary
"""
PRIMARY_KEYS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
WHERE conrelid = ANY(CAST(:tables AS regclass[])) AND contype = 'p'
"""


@dataclass(frozen=True)
class Found:
    """A column that is there; a demanded one must be given a value by whoever inserts."""

    type: str
    demanded: bool


Tables = Mapping[str, Mapping[str, Found]]


def adopt(connection: Connection, known_revisions: Collection[str], revision: str | None) -> bool:
    """Stamp a database of M1 in one transaction; return False if it is not one."""
    if revision in known_revisions:
        return False
    with connection.begin():
        tables = _tables(connection)
        if not _is_m1(tables):
            _refuse_unstamped(tables, revision)
            return False
        _refuse(_problems(connection, tables))
        if any(_mismatches("sessions", tables)):
            logger.info("The sessions of M1 cannot be read: people have to sign in again.")
            _replace_sessions(connection, tables)
            tables = _tables(connection)
        with _refusing_data():
            _drop_rules(connection)
            for table, columns in TABLES.items():
                _shape(connection, table, columns, tables[table])
            _add_rules(connection)
        _stamp(connection)
        logger.info("The database is one of M1 (revision %s); it is now at %s.", revision, REVISION)
        return True


def _is_m1(tables: Tables) -> bool:
    """M1 has a status; phases came with the revisions of CodeHub that followed it."""
    workspaces = tables.get("workspaces", {})
    return "status" in workspaces and "phase" not in workspaces


def _refuse_unstamped(tables: Tables, revision: str | None) -> None:
    # With a revision, Alembic itself says that it does not know it.
    if revision is None and tables.keys() & TABLES.keys():
        raise MigrationRefused(
            "The database has tables of these names already, but is neither one of M1 nor stamped with a "
            "revision: restore the table alembic_version from a backup, or use an empty database."
        )


def _problems(connection: Connection, tables: Tables) -> Iterator[str]:
    for table in ("users", "workspaces"):
        if table not in tables:
            yield f"there is no table {table}"
        else:
            yield from _mismatches(table, tables)
    for table in NOT_OF_M1:
        if table in tables:
            yield f"there is a table {table} already, rename it"
    statuses = connection.scalars(text("SELECT DISTINCT status::text FROM workspaces ORDER BY 1"))
    for status in statuses:
        if status not in STATUSES:
            yield f"there are workspaces with the status {status}"


def _mismatches(table: str, tables: Tables) -> Iterator[str]:
    found = tables.get(table, {})
    for name, column in TABLES[table].items():
        if name not in found:
            if not column.optional and column.default is None:
                yield f"{table}.{name} is missing"
        elif found[name].type != column.type and (found[name].type, column.type) not in CONVERSIONS:
            yield f"{table}.{name} is {found[name].type} and not {column.type}"


@contextmanager
def _refusing_data() -> Iterator[None]:
    """Rows that break a rule, or something of others that hangs on a column, are for a person to see to."""
    try:
        yield
    except DBAPIError as error:
        if not _sqlstate(error).startswith(NOT_TO_BE_CHANGED):
            raise
        _refuse(iter([str(getattr(error.orig, "__cause__", None) or error.orig)]))


def _sqlstate(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", ""))


def _refuse(problems: Iterator[str]) -> None:
    if found := list(problems):
        raise MigrationRefused(
            f"The database resembles one of M1, but cannot be upgraded as it is: {'; '.join(found)}."
        )


def _replace_sessions(connection: Connection, tables: Tables) -> None:
    if "sessions" in tables:
        connection.execute(text("DROP TABLE sessions"))
    definitions = (f"{name} {column.type}" for name, column in TABLES["sessions"].items())
    connection.execute(text(f"CREATE TABLE sessions ({', '.join(definitions)}, PRIMARY KEY (id))"))


def _drop_rules(connection: Connection) -> None:
    names = {"tables": list(TABLES)}
    for table, rule in connection.execute(text(RULES), names).all():
        connection.execute(text(f'ALTER TABLE {table} DROP CONSTRAINT "{rule}"'))
    for index in connection.scalars(text(UNIQUE_INDEXES), names).all():
        connection.execute(text(f"DROP INDEX {index}"))


def _shape(
    connection: Connection, table: str, columns: Mapping[str, Column], found: Mapping[str, Found]
) -> None:
    for name, column in columns.items():
        if name not in found:
            connection.execute(text(f"ALTER TABLE {table} ADD {name} {column.type}"))
        elif found[name].type != column.type:
            _convert(connection, table, name, found[name].type, column.type)
        if column.default is not None:
            connection.execute(text(f"UPDATE {table} SET {name} = {column.default} WHERE {name} IS NULL"))  # noqa: S608
        default = f"SET DEFAULT {column.default}" if column.default else "DROP DEFAULT"
        null = "DROP NOT NULL" if column.optional else "SET NOT NULL"
        connection.execute(text(f"ALTER TABLE {table} ALTER {name} {default}, ALTER {name} {null}"))
    for name in found.keys() - columns.keys():
        # Columns that we do not know stay, but nobody fills them any more.
        if found[name].demanded:
            connection.execute(text(f'ALTER TABLE {table} ALTER "{name}" DROP NOT NULL'))


def _convert(connection: Connection, table: str, name: str, old: str, new: str) -> None:
    value = CONVERSIONS[old, new].format(name)
    try:
        connection.execute(
            text(f"ALTER TABLE {table} ALTER {name} DROP DEFAULT, ALTER {name} TYPE {new} USING {value}")
        )
    except DBAPIError as error:
        if not _sqlstate(error).startswith(INVALID_VALUE):
            raise
        _refuse(iter([f"{table}.{name} holds values that are not of the type {new}"]))


def _add_rules(connection: Connection) -> None:
    keys = {row[0]: row for row in connection.execute(text(PRIMARY_KEYS), {"tables": list(TABLES)})}
    _refuse(
        f"the primary key of {table} is not its id"
        for table in TABLES
        if table not in keys or keys[table].definition != "PRIMARY KEY (id)"
    )
    for table, key in keys.items():
        if key.conname != f"pk_{table}":
            connection.execute(text(f'ALTER TABLE {table} RENAME CONSTRAINT "{key.conname}" TO pk_{table}'))
    for name, (table, rule) in CONSTRAINTS.items():
        connection.execute(text(f"ALTER TABLE {table} ADD CONSTRAINT {name} {rule}"))
    for name, place in INDEXES.items():
        connection.execute(text(f"DROP INDEX IF EXISTS {name}"))
        connection.execute(text(f"CREATE INDEX {name} ON {place}"))


def _stamp(connection: Connection) -> None:
    connection.execute(
        text(
            "CREATE TABLE IF NOT EXISTS alembic_version "
            "(version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text("DELETE FROM alembic_version"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION})


def _tables(connection: Connection) -> Tables:
    tables: dict[str, dict[str, Found]] = {}
    for table, name, kind, demanded in connection.execute(text(COLUMNS)):
        tables.setdefault(table, {})[name] = Found(kind, demanded)
    return tables
