"""Exit a process in which native threads, such as those of Temporal's client, may still be running."""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def exit_process(status: int) -> NoReturn:
    """Exit without finalizing the interpreter.

    Finalization does not wait for native threads. A thread that is just handing over a result would abort the
    process, and the supervisor would see SIGABRT instead of the status.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)
