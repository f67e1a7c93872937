"""The agent inside an instance: it starts the IDE, passes signals on, and ends with it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codehub.adapters.local.launcher import AGENT_VARIABLE, RUN_AGENT

REPOSITORY = Path(__file__).parents[2]


def run_agent(sockets: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", RUN_AGENT, str(REPOSITORY), *command),
        env={
            "PATH": os.environ["PATH"],
            AGENT_VARIABLE: json.dumps({"sockets": str(sockets), "ide_socket": "ide.sock"}),
        },
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 128 + signal.SIGKILL)])
def test_its_status_is_that_of_the_ide(tmp_path: Path, script: str, status: int) -> None:
    with run_agent(tmp_path, "sh", "-c", script) as agent:
        assert agent.wait() == status


def test_it_does_not_end_with_other_children(tmp_path: Path) -> None:
    with run_agent(tmp_path, "sh", "-c", "true & wait; exit 3") as agent:
        assert agent.wait() == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_ide_gets_its_signals(tmp_path: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 4' {name}; echo ready; while :; do sleep 0.1; done"
    with run_agent(tmp_path, "sh", "-c", script) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        agent.send_signal(number)
        assert agent.stdout.readline() == f"got {name}\n"
        assert agent.wait() == 4


def test_the_ide_sees_no_options_and_is_ended_by_a_closed_pipe(tmp_path: Path) -> None:
    with run_agent(tmp_path, "sh", "-c", "env; grep SigIgn /proc/self/status") as agent:
        assert agent.stdout is not None
        output = agent.stdout.read()
    assert AGENT_VARIABLE not in output
    ignored = int(output.rpartition("SigIgn:")[2], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


@pytest.mark.parametrize("depth", [1, 12])
def test_the_ide_can_listen_in_a_directory_with_a_path_of_any_length(tmp_path: Path, depth: int) -> None:
    directory = tmp_path.joinpath(*["a long name"] * depth)
    directory.mkdir(parents=True)
    listen = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    with run_agent(directory, sys.executable, "-c", listen, "{socket}") as agent:
        assert agent.wait() == 0
    assert [path.name for path in directory.iterdir()] == ["ide.sock"]
