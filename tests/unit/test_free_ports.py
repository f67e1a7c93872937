"""Ports are chosen once, kept, and replaced only if they are taken."""

import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from codehub.embedded.free_ports import LOOPBACK, choose_ports

NAMES = [f"port-{number}" for number in range(30)]
CHOOSE_AND_WAIT = """
from codehub.embedded.free_ports import choose_ports
print(choose_ports(["theirs"], {})["theirs"], flush=True)
input()
"""


def test_every_name_gets_its_own_port() -> None:
    ports = choose_ports(NAMES, {})
    assert list(ports) == NAMES
    assert len(set(ports.values())) == len(NAMES)


def test_outgoing_connections_cannot_get_a_chosen_port() -> None:
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(choose_ports(NAMES, {}).values()) < first_ephemeral


def test_free_ports_are_kept() -> None:
    remembered = choose_ports(NAMES, {})
    assert choose_ports(NAMES, remembered) == remembered


def test_a_taken_port_is_replaced() -> None:
    remembered = choose_ports(NAMES, {})
    with socket.create_server((LOOPBACK, remembered["port-3"])):
        chosen = choose_ports(NAMES, remembered)
    assert chosen["port-3"] != remembered["port-3"]
    assert {**chosen, "port-3": 0} == {**remembered, "port-3": 0}


def test_a_port_that_is_served_on_all_interfaces_is_taken() -> None:
    remembered = choose_ports(["one"], {})
    with socket.create_server(("0.0.0.0", remembered["one"])):  # noqa: S104 (that is the point)
        assert choose_ports(["one"], remembered) != remembered


def test_a_port_that_another_process_has_chosen_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other server may not listen yet."""
    command = [sys.executable, "-c", CHOOSE_AND_WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        monkeypatch.setattr(random, "choices", lambda *_, **__: [theirs, theirs + 1, theirs + 2])
        assert choose_ports(["ours"], {})["ours"] != theirs
        assert choose_ports(["named"], {"named": theirs})["named"] == theirs
        other.communicate("end")
    assert choose_ports(["ours"], {})["ours"] == theirs


def test_a_port_that_two_names_remember_goes_to_one_of_them() -> None:
    port = choose_ports(["first"], {})["first"]
    ports = choose_ports(["first", "second"], {"first": port, "second": port})
    assert ports["first"] == port
    assert ports["second"] != port
