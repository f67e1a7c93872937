"""Runs the IDE: forwards signals to it, reaps every child, and returns its exit status."""

import os
import signal
from collections.abc import Mapping

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The exit status that shells use for a command killed by a signal.
SIGNALED = 128
# Python ignores two signals, and our parent may ignore others; the IDE would inherit that.
DEFAULT_IN_IDE = (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ)


def run_ide(command: list[str], environment: Mapping[str, str]) -> int:
    """Start the IDE and wait until it exits."""
    # Block signals until the IDE exists, so that none is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    ide = os.posix_spawnp(command[0], command, environment, setsigmask=(), setsigdef=DEFAULT_IN_IDE)
    for number in FORWARDED:
        signal.signal(number, lambda received, _: os.kill(ide, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    return _wait_for(ide)


def _wait_for(ide: int) -> int:
    while True:
        # This also reaps orphans, which become our children.
        child, status = os.wait()
        if child == ide:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else SIGNALED - code
