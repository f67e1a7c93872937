"""Why a migration failed; the messages are for operators."""

from collections.abc import Sequence


class MigrationError(Exception):
    """The migration did not finish; the schema is at an earlier revision, and it can be run again."""


class MigrationRefused(MigrationError):
    """Continuing would lose or break something; a person has to act first."""


class MigrationInterrupted(MigrationError):
    """The connection to PostgreSQL was lost."""


class MigrationBlocked(MigrationError):
    """A lock was held for too long."""


class UnknownRevision(MigrationError):
    """No revision has this name, or several begin with it."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no single revision {name!r}; this version knows: {', '.join(known)}.")
