"""`python -m testkit.crash_points`: a worker that kills itself once, at a point named by the environment."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from worker.__main__ import main

CRASH_AT = "TESTKIT_CRASH_AT"
CRASHED_FILE = "TESTKIT_CRASHED_FILE"


@dataclass(frozen=True)
class CrashPoint:
    """`before` or `after` the named activity; the file records that the crash has happened."""

    moment: str
    activity_name: str
    crashed_file: Path

    def reached(self, moment: str, activity_name: str) -> None:
        if (moment, activity_name) != (self.moment, self.activity_name):
            return
        try:
            self.crashed_file.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def armed_crash_point() -> CrashPoint:
    """Read the crash point (`before:upload_archive`) and the file that marks it as passed."""
    moment, _, activity_name = os.environ[CRASH_AT].partition(":")
    return CrashPoint(moment, activity_name, Path(os.environ[CRASHED_FILE]))


class CrashInterceptor(Interceptor):
    """Wraps every activity, local activities included."""

    def __init__(self, point: CrashPoint) -> None:
        self._point = point

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Crash(next, self._point)


class _Crash(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, point: CrashPoint) -> None:  # noqa: A002
        super().__init__(next)
        self._point = point

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401
        name = activity.info().activity_type
        self._point.reached("before", name)
        result = await super().execute_activity(input)
        self._point.reached("after", name)
        return result


if __name__ == "__main__":
    sys.exit(main([CrashInterceptor(armed_crash_point())]))
