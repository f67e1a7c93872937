"""The filter of system calls on both architectures, run by a small interpreter of its instructions."""

import errno
import socket
import struct
from collections.abc import Sequence

import pytest

from codehub.adapters.local.seccomp import ARCHITECTURES, IOCTL, REFUSED, SOCKET, UnsupportedMachine, assemble

ALLOWED, KILLED = 0x7FFF_0000, 0x8000_0000
READ, PTRACE = (0, 63), (101, 117)
HIGH_BITS = 1 << 32


def refused(number: int) -> int:
    return 0x0005_0000 | number


def run(machine: str, number: int, arguments: Sequence[int] = (), audit: int | None = None) -> int:
    """Return what the kernel would do with this call."""
    arguments = [*arguments, *([0] * (6 - len(arguments)))]
    audit = ARCHITECTURES[machine].audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments)
    program = list(struct.iter_unpack("=HBBI", assemble(machine)))
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value}[code]
            position += if_true if holds else if_false


@pytest.fixture(params=ARCHITECTURES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_no_workspace_needs_is_refused(machine: str, name: str) -> None:
    number = REFUSED[name][ARCHITECTURES[machine].column]
    if number is not None:
        assert run(machine, number) == refused(errno.EPERM)


@pytest.mark.parametrize("numbers", [READ, PTRACE])
def test_other_calls_are_allowed(machine: str, numbers: tuple[int, int]) -> None:
    assert run(machine, numbers[ARCHITECTURES[machine].column]) == ALLOWED


@pytest.mark.parametrize(
    ("request_number", "expected"),
    [
        (0x5412, refused(errno.EPERM)),
        (0x5412 | HIGH_BITS, refused(errno.EPERM)),
        (0x541C, refused(errno.EPERM)),
        (0x5413, ALLOWED),
    ],
)
def test_nobody_types_into_a_terminal(machine: str, request_number: int, expected: int) -> None:
    number = IOCTL[ARCHITECTURES[machine].column]
    assert run(machine, number, (0, request_number)) == expected


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (socket.AF_UNIX, ALLOWED),
        (socket.AF_INET, ALLOWED),
        (socket.AF_INET6, ALLOWED),
        (socket.AF_NETLINK, ALLOWED),
        (socket.AF_INET | HIGH_BITS, ALLOWED),
        (socket.AF_VSOCK, refused(errno.EAFNOSUPPORT)),
        (socket.AF_VSOCK | HIGH_BITS, refused(errno.EAFNOSUPPORT)),
        (socket.AF_ALG, refused(errno.EAFNOSUPPORT)),
        (socket.AF_PACKET, refused(errno.EAFNOSUPPORT)),
    ],
)
def test_sockets_have_namespaces(machine: str, family: int, expected: int) -> None:
    assert run(machine, SOCKET[ARCHITECTURES[machine].column], (family,)) == expected


def test_another_architecture_is_killed(machine: str) -> None:
    others = [each.audit for each in ARCHITECTURES.values() if each != ARCHITECTURES[machine]]
    i386 = 0x4000_0003
    for audit in (*others, i386):
        assert run(machine, READ[ARCHITECTURES[machine].column], audit=audit) == KILLED


def test_the_numbers_of_x32_do_not_exist() -> None:
    assert run("x86_64", 0x4000_0000 | 250) == refused(errno.ENOSYS)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(UnsupportedMachine, match="riscv64"):
        assemble("riscv64")
