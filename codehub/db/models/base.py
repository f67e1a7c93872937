"""The base of all tables. Enumerations are text with a CHECK, because a PostgreSQL enum is hard to change."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    DateTime,
    Index,
    LargeBinary,
    MetaData,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """The base of all tables; it names every constraint, so that migrations can refer to it."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar = {
        UUID: Uuid(),
        bytes: LargeBinary(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(),
        str: Text(),
    }


def one_of(column: str, words: Iterable[str]) -> CheckConstraint:
    choices = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({choices})", name=column)


def partial_index(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(where))
