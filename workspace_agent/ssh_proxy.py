"""`ssh_proxy.py RELAY_HOST RELAY_PORT HOST PORT`: an ssh ProxyCommand through the egress gateway."""

import contextlib
import os
import socket
import sys
import threading

CHUNK_BYTES = 65536
LONGEST_RESPONSE = 65536


def main(relay_host: str, relay_port: str, host: str, port: str) -> int:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        connection = socket.create_connection((relay_host, int(relay_port)))
        connection.sendall(f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
        head, early = _read_response(connection)
    except OSError as error:
        sys.stderr.write(f"CodeHub's egress gateway does not respond: {error}\n")
        return 1
    if b" 200 " not in head.partition(b"\r\n")[0]:
        sys.stderr.buffer.write(early or head or b"CodeHub's egress gateway does not respond.\n")
        return 1
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    _write(early)
    while data := connection.recv(CHUNK_BYTES):
        _write(data)
    return 0


def _read_response(connection: socket.socket) -> tuple[bytes, bytes]:
    received = b""
    while b"\r\n\r\n" not in received and len(received) < LONGEST_RESPONSE:
        data = connection.recv(CHUNK_BYTES)
        if not data:
            break
        received += data
    head, _, early = received.partition(b"\r\n\r\n")
    return head, early


def _send(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main(*sys.argv[1:]))
