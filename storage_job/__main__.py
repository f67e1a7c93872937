"""`python -m storage_job archive|restore|create-empty|verify`, with the request on stdin or in a file."""

import argparse
import asyncio
import os
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from storage_job.errors import EXIT_CODES, EXIT_INVALID_REQUEST, InvalidRequest, JobError, failed
from storage_job.job import perform
from storage_job.progress import emit
from storage_job.request import JobRequest, Operation, parse_request

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> int:
    try:
        arguments = _parse_arguments()
        return asyncio.run(_run(_read_request(arguments), attended=arguments.attended))
    except InvalidRequest as error:
        return _report(error, EXIT_INVALID_REQUEST)
    except JobError as error:
        return _report(error, EXIT_CODES[error.reason])
    except Exception:  # noqa: BLE001 (the outermost frame: the caller needs its last line whatever happened)
        traceback.print_exc()
        unexpected = failed("The job failed unexpectedly; its log says how. Try again.")
        return _report(unexpected, EXIT_CODES[unexpected.reason])


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="storage_job", description="Archive or restore the home on a volume."
    )
    parser.add_argument("operation", nargs="?", choices=[*Operation], help="may also stand in the request")
    parser.add_argument(
        "--request", type=Path, help="the request's file, such as a mounted secret; else stdin"
    )
    parser.add_argument(
        "--attended", action="store_true", help="the request is one line on stdin; end when stdin is closed"
    )
    return parser.parse_args()


def _read_request(arguments: argparse.Namespace) -> JobRequest:
    read_stdin = sys.stdin.readline if arguments.attended else sys.stdin.read
    try:
        document = arguments.request.read_text() if arguments.request else read_stdin()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The request cannot be read ({error}).") from error
    return parse_request(document, arguments.operation)


async def _run(request: JobRequest, *, attended: bool) -> int:
    work = asyncio.create_task(perform(request))
    received: list[signal.Signals] = []
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        work.cancel()

    def abandon() -> None:
        loop.remove_reader(sys.stdin.fileno())
        stop(signal.SIGHUP)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    if attended:
        # Nothing more is sent, so once there is something to read it has been closed.
        loop.add_reader(sys.stdin.fileno(), abandon)
    try:
        emit("done", **asdict(await work))
    except asyncio.CancelledError:
        error = failed("The job was stopped before it had finished; run it again.")
        return _report(error, 128 + (received[0] if received else signal.SIGPIPE))
    return 0


def _report(error: JobError, code: int) -> int:
    # Nobody may be reading any more.
    with suppress(OSError):
        emit("error", reason=error.reason, message=error.message)
    return code


def _leave(code: int) -> NoReturn:
    """End at once. The download client's threads may still want the interpreter for a moment; if it is being
    taken down then, the process aborts, and a job that has done its work would count as failed."""
    with suppress(OSError):
        sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _leave(main())
