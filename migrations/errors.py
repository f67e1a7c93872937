"""Why a migration did not run; the messages are for operators."""

from collections.abc import Sequence


class MigrationError(Exception):
    """The schema is as it was before, or at a revision between: run the migration again."""


class MigrationRefused(MigrationError):
    """Going on would lose or break something, so a person has to act first."""


class MigrationInterrupted(MigrationError):
    """PostgreSQL went away in the middle."""


class MigrationBlocked(MigrationError):
    """Somebody else kept a lock for too long."""


class UnknownRevision(MigrationError):
    """There is no revision of this name, or several begin with it."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no single revision {name!r}; this version knows: {', '.join(known)}.")
