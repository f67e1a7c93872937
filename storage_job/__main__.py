"""`python -m storage_job archive|restore|create-empty|verify`; the request comes from stdin or a file."""

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

from storage_job.errors import EXIT_CODES, EXIT_INVALID_REQUEST, InvalidRequest, JobError, action_failed
from storage_job.job import perform
from storage_job.lease import Lease, watch
from storage_job.progress import emit_last
from storage_job.request import JobRequest, Operation, parse_request

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> int:
    arguments = _parse_arguments()
    try:
        return asyncio.run(_run(_read_request(arguments), arguments))
    except InvalidRequest as error:
        return _report(error, EXIT_INVALID_REQUEST, arguments.result)
    except JobError as error:
        return _report(error, EXIT_CODES[error.reason], arguments.result)
    except Exception:  # noqa: BLE001 (outermost frame: the caller needs a last line in every case)
        traceback.print_exc()
        unexpected = action_failed("The job failed unexpectedly. See its log for details, then try again.")
        return _report(unexpected, EXIT_CODES[unexpected.reason], arguments.result)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="storage_job", description="Archive or restore the home on a volume."
    )
    parser.add_argument("operation", nargs="?", choices=[*Operation], help="may also be given in the request")
    parser.add_argument(
        "--request", type=Path, help="file with the request, such as a mounted secret (default: stdin)"
    )
    parser.add_argument("--result", type=Path, help="file that receives a copy of the last output line")
    parser.add_argument(
        "--attended", action="store_true", help="read the request as one line; stop when stdin is closed"
    )
    parser.add_argument("--lease", type=Path, help="stop if this file does not change for --lease-seconds")
    parser.add_argument("--lease-seconds", type=float, default=60.0, help="how long (default: 60)")
    return parser.parse_args()


def _read_request(arguments: argparse.Namespace) -> JobRequest:
    read_stdin = sys.stdin.readline if arguments.attended else sys.stdin.read
    try:
        document = arguments.request.read_text() if arguments.request else read_stdin()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"Cannot read the request ({error}).") from error
    return parse_request(document, arguments.operation)


async def _run(request: JobRequest, arguments: argparse.Namespace) -> int:
    work = asyncio.create_task(perform(request))
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        received.append(number)
        work.cancel()

    def stop_unattended() -> None:
        loop.remove_reader(sys.stdin.fileno())
        stop(signal.SIGHUP)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    if arguments.attended:
        # Nothing follows the request, so stdin becomes readable only when it is closed.
        loop.add_reader(sys.stdin.fileno(), stop_unattended)
    if arguments.lease:
        lease = Lease(arguments.lease, arguments.lease_seconds)
        watch(lease, lambda: loop.call_soon_threadsafe(stop, signal.SIGHUP))
    try:
        emit_last(arguments.result, "done", **asdict(await work))
    except asyncio.CancelledError:
        error = action_failed("The job was stopped before it finished. Run it again.")
        return _report(error, 128 + (received[0] if received else signal.SIGPIPE), arguments.result)
    return 0


def _report(error: JobError, status: int, result: Path | None) -> int:
    # The reader may already be gone.
    with suppress(OSError):
        emit_last(result, "error", reason=error.reason, message=error.message)
    return status


# A copy of codehub/process_exit.py, because the job imports nothing from the control plane.
def exit_process(status: int) -> NoReturn:
    """Exit without finalizing the interpreter.

    Finalization does not wait for the S3 client's native threads: one that is just handing over a result
    aborts the process, and a job that succeeded would count as failed.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    exit_process(main())
