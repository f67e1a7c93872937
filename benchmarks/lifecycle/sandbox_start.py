"""How much longer a process takes in the sandbox of a local instance: its start, the agent, the filter."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.report import Cell, Report, Section, milliseconds, percentile
from codehub.adapters.local import sandbox
from codehub.adapters.local.instance_files import SOCKETS_NAME
from codehub.adapters.local.launcher import AGENT_VARIABLE, RUN_AGENT
from codehub.adapters.local.owners import UIDS

PROGRAM = ("/bin/true",)
# Each block is one read and one write, so nearly all of its time is system calls. The shell prints the
# processor time of its children, which other work on the machine affects little.
BLOCKS = 1_000_000
SYSTEM_CALLS = ("/bin/sh", "-c", f"dd if=/dev/zero of=/dev/null bs=1 count={BLOCKS} status=none; times")
TIME = re.compile(r"(\d+)m([\d.]+)s")
WARM_UP = 3
PERCENTS = (10, 50, 90)
# All need some options; what is no agent ignores them.
AGENT_OPTIONS = {"sockets": sandbox.SOCKETS, "ide_socket": "ide"}
Commands = Mapping[str, Sequence[str]]
Result = Callable[[str, float], float]


def measure_sandbox(rounds: int, report: Report) -> None:
    report.log(f"start of a process in the sandbox, {rounds} rounds")
    with tempfile.TemporaryDirectory() as name, sandbox.open_filter() as descriptor:
        inside = _Inside(Path(name), descriptor)
        starts = {
            "bare process": PROGRAM,
            "agent": (*inside.agent(str(sandbox.AGENT_PACKAGE.parent)), *PROGRAM),
            "sandbox without filter": _without_filter(inside.enter(PROGRAM)),
            "sandbox": inside.enter(PROGRAM),
            "sandbox and agent": inside.enter((*inside.agent(sandbox.AGENT_PATH), *PROGRAM)),
        }
        title = f"Start and end of `true`, {rounds} rounds"
        report.add(_measure(title, starts, rounds, descriptor, lambda _output, seconds: seconds))
        calls = {
            "bare process": SYSTEM_CALLS,
            "sandbox without filter": _without_filter(inside.enter(SYSTEM_CALLS)),
            "sandbox": inside.enter(SYSTEM_CALLS),
        }
        title = f"Processor time of {2 * BLOCKS:,} system calls, {rounds // 2} rounds"
        report.add(_measure(title, calls, rounds // 2, descriptor, lambda output, _: _children(output)))


def _measure(title: str, commands: Commands, rounds: int, descriptor: int, result: Result) -> Section:
    times = defaultdict[str, list[float]](list)
    environment = {"PATH": os.defpath, AGENT_VARIABLE: json.dumps(AGENT_OPTIONS)}
    for number in range(WARM_UP + rounds):
        for kind, command in commands.items():
            # Each sandbox reads the filter from its beginning.
            os.lseek(descriptor, 0, os.SEEK_SET)
            began = time.perf_counter()
            run = subprocess.run(  # noqa: S603
                command,
                check=True,
                env=environment,
                pass_fds=(descriptor,),
                stdout=subprocess.PIPE,
                text=True,
            )
            if number >= WARM_UP:
                times[kind].append(result(run.stdout, time.perf_counter() - began))
    # The fastest ones are least affected by other work on the machine.
    rows: list[Sequence[Cell]] = [
        (kind, *(milliseconds(percentile(values, percent)) for percent in PERCENTS))
        for kind, values in times.items()
    ]
    return Section(title, ("ms", *(f"p{percent}" for percent in PERCENTS)), rows, [])


def _children(output: str) -> float:
    """Return the seconds of the shell's children: the last line has them, in user and in kernel mode."""
    return sum(int(minutes) * 60 + float(seconds) for minutes, seconds in TIME.findall(output)[-2:])


def _without_filter(command: Sequence[str]) -> list[str]:
    """Return the command, or the request in its last word, without the option."""
    words = list(command)
    if words[0] == sys.executable:
        request = json.loads(words[-1])
        return [*words[:-1], json.dumps({**request, "command": _without_filter(request["command"])})]
    position = words.index("--add-seccomp-fd")
    return words[:position] + words[position + 2 :]


class _Inside:
    """The sandbox of an instance that has no IDE."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self._uid = UIDS[0] if os.geteuid() == 0 else None
        self._descriptor = descriptor
        home, sockets = directory / "home", directory / SOCKETS_NAME
        for each in (home, sockets):
            each.mkdir(mode=0o700)
            if self._uid is not None:
                os.chown(each, self._uid, self._uid)
        sandbox.write_accounts(directory, self._uid)
        self._mounts = sandbox.Mounts(home, sockets, directory, (Path(sys.base_prefix),))
        self._bubblewrap = sandbox.require_bubblewrap(UIDS if self._uid else None)

    def enter(self, command: Sequence[str]) -> list[str]:
        return sandbox.enter(
            self._bubblewrap, command, self._mounts, uid=self._uid, filter_descriptor=self._descriptor
        )

    @staticmethod
    def agent(path: str) -> tuple[str, ...]:
        return (str(Path(sys.executable).resolve()), "-I", "-S", "-c", RUN_AGENT, path)
