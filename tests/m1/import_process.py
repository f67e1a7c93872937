"""Starts `codehub migrate --import-homes` in a process that a test can kill."""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from cli.main import main

_processes = multiprocessing.get_context("forkserver")
# Loading the command takes longer than most of these runs last, so fork them from a loaded process.
_processes.set_forkserver_preload([__name__, "cli.migrate", "cli.import_homes"])


def start_import(directory: Path, environment: Mapping[str, str]) -> ForkServerProcess:
    process = _processes.Process(target=_import_homes, args=(directory, dict(environment)))
    process.start()
    return process


def _import_homes(directory: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with Path(os.devnull).open("wb") as nowhere:
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(nowhere.fileno(), descriptor)
    sys.argv = ["codehub", "migrate", "--import-homes", str(directory)]
    main()
