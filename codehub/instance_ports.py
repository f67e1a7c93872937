"""The client of the agent's port forwarder; see ADR 0045."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence

from codehub.domain.failures import Transient
from codehub.domain.port_shares import LAST_PORT
from codehub.domain.states import ErrorReason
from codehub.instance_egress import RELAY_PORT
from codehub.origins import LOOPBACK_DOMAIN, Origins
from codehub.ports import ListeningPort, PortUnavailable, Upstream
from codehub.unix_sockets import connectable

RESERVED_PORTS = frozenset({RELAY_PORT})
LIST_SECONDS = 5.0
# A workspace can replace the agent, so the response is untrusted.
LONGEST_LIST = 65536
MAX_PORTS = 256
LONGEST_NAME = 64
NO_AGENT = "This image has no agent, so its ports cannot be opened."
OLD_AGENT = "This workspace was started by an older release. Restart it to open its ports."


def forwarder_options(
    address: Mapping[str, str], reserved: frozenset[int], *, marker: str = "", secret: str = ""
) -> dict[str, str]:
    """Return the options of the forwarder; see workspace_agent/port_forwarder.py."""
    ports = " ".join(map(str, sorted(reserved)))
    return {**address, "reserved": ports, "marker": marker, "secret": secret}


def port_environment(origins: Origins) -> dict[str, str]:
    """Return variables that make development servers accept the host names of ports."""
    # Vite accepts names below localhost by default.
    if not origins.has_ports or origins.domain == LOOPBACK_DOMAIN:
        return {}
    return {"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS": f".{origins.domain}"}


def port_upstream(
    host: str, agent_port: int, port: int, reserved: frozenset[int], secret: str = ""
) -> Upstream:
    """Return how the proxy reaches a port through the agent; raise PortUnavailable for CodeHub's own."""
    if port in reserved:
        raise PortUnavailable(explain_reserved(port))
    return Upstream(host, agent_port, keep_prefix=True, preamble=_line(f"CONNECT {port}", secret))


def explain_reserved(port: int) -> str:
    return f"Port {port} is used by CodeHub itself. Use another port for your program."


async def ask_for_ports(host: str, agent_port: int, secret: str = "") -> Sequence[ListeningPort]:
    """Return the listening ports that the agent reports. Raise Transient if it does not respond."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return _parse(await _ask(host, agent_port, _line("LIST", secret)))
    except (OSError, TimeoutError, ValueError, RecursionError) as error:
        message = f"The agent of this workspace does not list its ports ({error or 'timeout'})."
        raise Transient(ErrorReason.UNREACHABLE, message) from error


def _line(command: str, secret: str) -> bytes:
    return f"{secret} {command}\n".encode() if secret else f"{command}\n".encode()


async def _ask(host: str, agent_port: int, line: bytes) -> bytes:
    reader, writer = await _connect(host, agent_port)
    try:
        writer.write(line)
        received = b""
        while chunk := await reader.read(LONGEST_LIST):
            received += chunk
            if len(received) > LONGEST_LIST:
                raise ValueError("too long")
        return received
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _connect(host: str, agent_port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not host.startswith("/"):
        return await asyncio.open_connection(host, agent_port)
    with connectable(host) as path:
        return await asyncio.open_unix_connection(path)


def _parse(content: bytes) -> list[ListeningPort]:
    document = json.loads(content)
    listed = document if isinstance(document, list) else []
    entries = (each for each in listed if isinstance(each, dict) and _is_port(each.get("port")))
    found = {each["port"]: _printable(each.get("process")) for each in entries}
    return [ListeningPort(port, found[port]) for port in sorted(found)[:MAX_PORTS]]


def _is_port(value: object) -> bool:
    return type(value) is int and 0 < value <= LAST_PORT


def _printable(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    return "".join(filter(str.isprintable, name))[:LONGEST_NAME] or None
