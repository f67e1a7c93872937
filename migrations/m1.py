"""Recognize a database of M1, convert its tables to revision 0001, and stamp it."""

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
    """A column of 0001; it may be missing if it is optional or has a default."""

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

# How to convert a column of another type; M1 has no other types.
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
# Later revisions create these, so they must not exist yet.
NOT_OF_M1 = ("api_tokens", "archives", "workspace_events", "idempotency_keys", "workspace_usage")
INVALID_VALUE = "22"
# Integrity constraint violation, and feature not supported: a column that a view uses cannot be altered.
NOT_TO_BE_CHANGED = ("23", "0A")

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable = 'NO' AND column_default IS NULL
    AND NOT (is_identity = 'YES' OR is_generated = 'ALWAYS') AS demanded
FROM information_schema.columns WHERE table_schema = current_schema()
"""
# All constraints but the primary keys; those of 0001 replace them.
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
class ExistingColumn:
    """A column of the database; a demanded one has no default and is not nullable."""

    type: str
    demanded: bool


Tables = Mapping[str, Mapping[str, ExistingColumn]]


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
            logger.info("cannot read the sessions of M1: people have to sign in again")
            _replace_sessions(connection, tables)
            tables = _tables(connection)
        with _refusing_data():
            _drop_rules(connection)
            for table, columns in TABLES.items():
                _shape(connection, table, columns, tables[table])
            _add_rules(connection)
        _stamp(connection)
        logger.info("converted the database of M1 (revision %s) to revision %s", revision, REVISION)
        return True


def _is_m1(tables: Tables) -> bool:
    """Return whether this is a database of M1, which has a status and no phases."""
    workspaces = tables.get("workspaces", {})
    return "status" in workspaces and "phase" not in workspaces


def _refuse_unstamped(tables: Tables, revision: str | None) -> None:
    # With an unknown revision, Alembic itself raises an error.
    if revision is None and tables.keys() & TABLES.keys():
        raise MigrationRefused(
            "The database already has tables with these names, but it is not one of M1 and has no revision: "
            "restore the table alembic_version from a backup, or use an empty database."
        )


def _problems(connection: Connection, tables: Tables) -> Iterator[str]:
    for table in ("users", "workspaces"):
        if table not in tables:
            yield f"there is no table {table}"
        else:
            yield from _mismatches(table, tables)
    for table in NOT_OF_M1:
        if table in tables:
            yield f"there is already a table {table}, rename it"
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
    """Refuse rows that break a constraint, and columns on which other objects depend."""
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
            f"The database looks like one of M1, but cannot be upgraded: {'; '.join(found)}."
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
    connection: Connection, table: str, columns: Mapping[str, Column], found: Mapping[str, ExistingColumn]
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
        # Unknown columns stay, but nothing fills them any more.
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
    for name, columns in INDEXES.items():
        connection.execute(text(f"DROP INDEX IF EXISTS {name}"))
        connection.execute(text(f"CREATE INDEX {name} ON {columns}"))


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
    tables: dict[str, dict[str, ExistingColumn]] = {}
    for table, name, kind, demanded in connection.execute(text(COLUMNS)):
        tables.setdefault(table, {})[name] = ExistingColumn(kind, demanded)
    return tables
