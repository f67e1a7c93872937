"""Building blocks of revisions: each is short or does not block, and can be run again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from alembic import op
from sqlalchemy import ARRAY, Uuid, bindparam, text

BATCH_SIZE = 2000


@contextmanager
def each_statement_by_itself() -> Iterator[None]:
    """Commit each statement; those before a failure stay done."""
    with op.get_context().autocommit_block():
        yield


def update_in_batches(table: str, assignments: str, where: str) -> None:
    """Update rows in many short transactions; `where` is false for a row that is done."""
    select = text(f"SELECT id FROM {table} WHERE id > :after AND ({where}) ORDER BY id LIMIT :size")  # noqa: S608
    update = text(f"UPDATE {table} SET {assignments} WHERE id = ANY(:ids) AND ({where})")  # noqa: S608
    update = update.bindparams(bindparam("ids", type_=ARRAY(Uuid())))
    select = select.bindparams(bindparam("after", type_=Uuid()))
    with each_statement_by_itself():
        after: Any = "00000000-0000-0000-0000-000000000000"
        while ids := op.get_bind().scalars(select, {"after": after, "size": BATCH_SIZE}).all():
            op.get_bind().execute(update, {"ids": list(ids)})
            after = ids[-1]


def add_checks(table: str, checks: Mapping[str, str]) -> None:
    """Add CHECK constraints: for new rows at once, then validate existing rows without blocking."""
    with each_statement_by_itself():
        for name, condition in checks.items():
            op.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
            op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID")
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


def drop_constraints(table: str, names: Sequence[str]) -> None:
    for name in names:
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")


def set_not_null(table: str, columns: Sequence[str]) -> None:
    """Set NOT NULL; a validated CHECK saves PostgreSQL from reading the table under a lock."""
    proofs = {f"proof_{column}": f"{column} IS NOT NULL" for column in columns}
    add_checks(table, proofs)
    with each_statement_by_itself():
        for column, proof in zip(columns, proofs, strict=True):
            op.execute(f"ALTER TABLE {table} ALTER {column} SET NOT NULL, DROP CONSTRAINT {proof}")


def drop_not_null(table: str, columns: Sequence[str]) -> None:
    changes = ", ".join(f"ALTER {column} DROP NOT NULL" for column in columns)
    op.execute(f"ALTER TABLE {table} {changes}")


def create_indexes(indexes: Mapping[str, str], kind: str = "INDEX") -> None:
    """Build indexes while the table is in use."""
    with each_statement_by_itself():
        # It waits for older transactions, but does not block others.
        op.execute("SET lock_timeout = 0")
        for name, definition in indexes.items():
            # An interrupted build leaves an invalid index.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE {kind} CONCURRENTLY {name} ON {definition}")
        op.execute("RESET lock_timeout")


def drop_indexes(names: Sequence[str]) -> None:
    with each_statement_by_itself():
        op.execute("SET lock_timeout = 0")
        for name in names:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute("RESET lock_timeout")
