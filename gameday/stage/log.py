"""What the supervisor and the pool of connections say, in a file: on the screen there is the game."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOGGERS = ("codehub.embedded", "sqlalchemy")


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    # Opened late: the directory is made with the rest of the stack.
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    with ExitStack() as held:
        held.callback(handler.close)
        for name in LOGGERS:
            held.enter_context(_diverted(logging.getLogger(name), handler))
        yield


@contextmanager
def _diverted(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagated
        logger.removeHandler(handler)
