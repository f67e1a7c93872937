"""A small internet for tests of the egress gateway: two network namespaces, joined by a veth pair.

The gateway runs in one of them, which has private and local addresses with a server on each, the victim. The
other one is the outside, with a name server and a web server. The host's own network is not touched.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from testkit.needs import need_program, need_root
from testkit.processes import kill, spawn

ROOT = Path(__file__).parents[1]
# TEST-NET-2 and an unassigned IPv6 prefix: public by the rules, but on no real network.
GATEWAY_ADDRESSES = ("198.51.100.1/24", "2a0e:97c0::1/64")
OUTSIDE_ADDRESSES = ("198.51.100.2/24", "198.51.100.3/24", "2a0e:97c0::2/64")
NAME_SERVER = "198.51.100.2"
WEB_PORT = 80
SILENT_PORT = 81
VICTIM_PORT = 8088
# Addresses of the gateway's machine besides loopback; the last two are public.
VICTIM_ADDRESSES = (
    "10.9.8.7/32",
    "100.64.3.3/32",
    "168.63.129.16/32",
    "169.254.169.254/32",
    "172.16.5.5/32",
    "192.168.7.7/32",
    "fd00:ec2::254/128",
    "203.0.113.77/32",
    "2a0e:97c1::77/128",
)


@dataclass(frozen=True)
class Internet:
    """The names of the two namespaces, and the file that makes a process use the name server."""

    gateway: str
    outside: str
    resolver: Path

    def at_gateway(self, command: Sequence[str | Path]) -> list[str | Path]:
        """Return the command that runs this one on the gateway's machine."""
        script = f'mount --bind {self.resolver} /etc/resolv.conf && exec "$@"'
        return ["ip", "netns", "exec", self.gateway, "unshare", "--mount", "sh", "-c", script, "sh", *command]

    def outside_command(self, command: Sequence[str | Path]) -> list[str | Path]:
        return ["ip", "netns", "exec", self.outside, *command]

    def fetch_directly(self, address: str, port: int) -> str:
        """Fetch from the gateway's machine without the gateway, as the positive control of an attack."""
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{port}/"
        fetch = f"import urllib.request as r; print(r.urlopen({url!r}, timeout=10).read().decode())"
        run = subprocess.run(
            self.at_gateway((sys.executable, "-c", fetch)), capture_output=True, text=True, check=True
        )
        return run.stdout.strip()


@contextmanager
def running_internet(directory: Path) -> Iterator[Internet]:
    need_root()
    need_program("ip")
    need_program("unshare")
    name = f"codehub-{uuid4().hex[:8]}"
    resolver = directory / "resolv.conf"
    resolver.write_text(f"nameserver {NAME_SERVER}\noptions attempts:1 timeout:2\n")
    internet = Internet(f"{name}-gateway", f"{name}-outside", resolver)
    with ExitStack() as stack:
        for namespace in (internet.gateway, internet.outside):
            _ip("netns", "add", namespace)
            stack.callback(_ip, "netns", "delete", namespace)
        _connect(internet)
        for role, command in _servers(internet).items():
            stack.callback(kill, _start(role, command, directory))
        yield internet


def _connect(internet: Internet) -> None:
    gateway, outside = internet.gateway, internet.outside
    # Create both ends inside, because Chromium in other tests reacts to new interfaces of the host.
    _ip("-n", gateway, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", outside)
    for namespace, addresses in ((gateway, GATEWAY_ADDRESSES), (outside, OUTSIDE_ADDRESSES)):
        _ip("-n", namespace, "link", "set", "lo", "up")
        for address in addresses:
            # Without duplicate address detection, which takes a second.
            nodad = ("nodad",) if ":" in address else ()
            _ip("-n", namespace, "address", "add", address, "dev", "cable", *nodad)
        _ip("-n", namespace, "link", "set", "cable", "up")
    for address in VICTIM_ADDRESSES:
        _ip("-n", gateway, "address", "add", address, "dev", "lo")


def _servers(internet: Internet) -> Mapping[str, list[str | Path]]:
    program = (sys.executable, ROOT / "testkit" / "internet_servers.py")
    return {
        "outside": internet.outside_command((*program, "outside", str(WEB_PORT), str(SILENT_PORT))),
        "victim": internet.at_gateway((*program, "victim", str(VICTIM_PORT))),
    }


def _start(role: str, command: list[str | Path], directory: Path) -> "subprocess.Popen[bytes]":
    log = directory / f"{role}.log"
    process = spawn(command, log)
    while "ready" not in log.read_text():
        if process.poll() is not None:
            raise AssertionError(f"{role} did not start:\n{log.read_text()}")
    return process


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True)  # noqa: S607
