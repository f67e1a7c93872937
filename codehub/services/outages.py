"""Which errors mean that a service is down."""

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Transient

OUTAGES = (
    DatabaseUnavailable,
    InterfaceError,
    OperationalError,
    PoolTimeout,
    Transient,
    ConnectionError,
    TimeoutError,
)
# The first two characters of PostgreSQL's error code: connection lost, transaction rolled back for another
# one, out of resources, canceled (also by a time limit) or shutting down.
OUTAGE_CLASSES = frozenset({"08", "40", "53", "57"})


def is_outage(error: Exception) -> bool:
    if isinstance(error, OUTAGES):
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or code[:2] in OUTAGE_CLASSES
