"""Runs the IDE: forwards signals to it, reaps every child, and returns its exit status."""

import os
import signal
from collections.abc import Mapping

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# As a shell reports a command that was ended by a signal.
SIGNALED = 128
# Python ignores two of them, and whoever started us may ignore others; a child would inherit that.
DEFAULT_IN_IDE = (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ)


def run_ide(command: list[str], environment: Mapping[str, str]) -> int:
    """Start the IDE and wait until it exits."""
    # Blocked until the IDE exists, so that a signal always has somebody to go to.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    ide = os.posix_spawnp(command[0], command, environment, setsigmask=(), setsigdef=DEFAULT_IN_IDE)
    for number in FORWARDED:
        signal.signal(number, lambda received, _: os.kill(ide, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    return _wait_for(ide)


def _wait_for(ide: int) -> int:
    while True:
        # Also children of others that became ours.
        child, status = os.wait()
        if child == ide:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else SIGNALED - code
