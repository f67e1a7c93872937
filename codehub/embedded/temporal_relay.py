"""Runs the embedded Temporal in its own network namespace, behind mutual TLS.

Temporal's development server authenticates nobody. So this process binds a port of the host's loopback
interface, leaves the host's network, starts Temporal in the new one, and relays TLS connections to it: h2
(gRPC) to the frontend, http/1.1 to the Web UI.
"""

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import ssl
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path

import uvloop

from codehub.embedded.child_process import die_with_parent
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.network_namespace import NamespaceRefused, enter_network_namespace
from codehub.embedded.probes import http_ok
from codehub.embedded.relaying import ClientSide

# Inside the namespace, where no other process can take them.
FRONTEND_PORT = 7233
HTTP_PORT = 7243
METRICS_PORT = 7244
UI_PORT = 8233
PORTS_BY_PROTOCOL = {"h2": FRONTEND_PORT, "http/1.1": UI_PORT}
POLL_SECONDS = 0.02
HANDSHAKE_SECONDS = 5.0
FAILED = 1


def command(
    port: int, authority: Path, certificate: tuple[Path, Path], namespace: str, temporal: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs this module. -P: do not import from the working directory."""
    options = (str(port), str(authority), *(str(path) for path in certificate), namespace)
    return (sys.executable, "-P", "-m", "codehub.embedded.temporal_relay", *options, *temporal)


def server_context(authority: Path, certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(*certificate)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(list(PORTS_BY_PROTOCOL))
    return context


async def _serve(listener: socket.socket, context: ssl.SSLContext, namespace: str, temporal: Process) -> int:
    """Relay until Temporal ends; return its exit code."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _terminate, temporal)
    ended = asyncio.create_task(temporal.wait())
    while not ended.done() and not await _is_ready(namespace):
        await asyncio.wait({ended}, timeout=POLL_SECONDS)
    if ended.done():
        return ended.result()
    # Listen only now, so that a restarting server looks down to clients.
    server = await asyncio.get_running_loop().create_server(
        lambda: ClientSide(PORTS_BY_PROTOCOL),
        sock=listener,
        ssl=context,
        ssl_handshake_timeout=HANDSHAKE_SECONDS,
    )
    code = await ended
    server.close()
    return code


def _terminate(temporal: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        temporal.terminate()


async def _is_ready(namespace: str) -> bool:
    frontend = await http_ok(HTTP_PORT, f"/api/v1/namespaces/{namespace}")
    return frontend and await http_ok(UI_PORT, "/")


async def _run(options: argparse.Namespace, listener: socket.socket, lock: int) -> int:
    context = server_context(options.authority, (options.certificate, options.key))
    temporal = await asyncio.create_subprocess_exec(
        *options.temporal, pass_fds=(lock,), preexec_fn=die_with_parent(signal.SIGKILL)
    )
    return await _serve(listener, context, options.namespace, temporal)


def _lock_database() -> int:
    """Wait until no other Temporal uses this directory."""
    # Temporal inherits the lock, so it is held as long as either process lives.
    lock = os.open("temporal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((LOOPBACK, port))
    return listener


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("authority", type=Path)
    parser.add_argument("certificate", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("namespace")
    parser.add_argument("temporal", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def main() -> int:
    """Run until Temporal exits. Refuse to run it in the host's network."""
    options = _parse(sys.argv[1:])
    stay_with_parent = die_with_parent(signal.SIGKILL, os.getppid())
    listener = _listener(options.port)
    try:
        enter_network_namespace()
    except NamespaceRefused as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    # A change of credentials may have cleared the parent-death signal.
    stay_with_parent()
    return uvloop.run(_run(options, listener, _lock_database()))


if __name__ == "__main__":
    sys.exit(main())
