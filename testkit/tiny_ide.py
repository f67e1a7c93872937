"""A minimal IDE: it serves requests within milliseconds and does a few things on request.

Usage: tiny_ide.py PORT|SOCKET PREFIX [mute|deaf|held]: `mute` never listens, `deaf` ignores SIGTERM, and
`held` does not listen while its home has a file with the name `hold`.
"""

import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

# The client's key, and what the protocol appends to it.
SOCKET_KEY = re.compile(r"\r\nSec-WebSocket-Key: (\S+)\r\n", re.IGNORECASE)
SOCKET_ID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def answer(path: str) -> str:
    kind, _, rest = path.partition("/")
    if kind == "environ":
        return json.dumps(dict(os.environ))
    if kind == "list":
        return json.dumps(sorted(os.listdir(f"/{rest}")) if os.path.isdir(f"/{rest}") else None)  # noqa: PTH112, PTH208
    if kind == "say":
        print(rest, flush=True)  # noqa: T201
    if kind == "detach":
        # A child in its own session that has no inherited descriptors.
        return str(subprocess.Popen(("/bin/sleep", "1000"), start_new_session=True).pid)
    if kind == "run":
        # Like a terminal: the command is hexadecimal, with null bytes between its words.
        words = bytes.fromhex(rest).decode().split("\0")
        return subprocess.run(words, check=False, stdout=subprocess.PIPE, text=True, close_fds=False).stdout
    if kind == "listen":
        # Like a development server: on loopback only, on a port that is free.
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        return str(server.getsockname()[1])
    if kind in {"exit", "exhaust"}:
        end(kind)
    return "ok"


def end(kind: str) -> None:
    memory = []
    while kind == "exhaust":
        # More than the limit of the container: the kernel ends the process.
        memory.append(b"x" * 2**20)
    os._exit(1)


def echo(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)


def listen(address: str) -> socket.socket:
    if address.isdecimal():
        return socket.create_server((os.environ.get("LISTEN", "127.0.0.1"), int(address)))
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    # CodeHub may run as another user; the directory keeps all others out.
    os.chmod(address, 0o666)  # noqa: PTH101, S103
    server.listen()
    return server


def serve(address: str, prefix: str) -> None:
    token = os.environ.get("TOKEN")
    with listen(address) as server:
        print("listening", flush=True)  # noqa: T201
        while True:
            connection, _ = server.accept()
            head = connection.recv(65536).decode()
            path = head.split()[1]
            known = token is None or f"Authorization: token {token}\r\n" in head
            allowed = known and path.startswith(prefix)
            key = SOCKET_KEY.search(head)
            if allowed and key:
                threading.Thread(target=echo_messages, args=(connection, key[1]), daemon=True).start()
            else:
                respond(connection, answer(path.removeprefix(prefix)) if allowed else None)


def respond(connection: socket.socket, body: str | None) -> None:
    status = "403 Forbidden" if body is None else "200 OK"
    response = f"HTTP/1.1 {status}\r\nContent-Length: {len(body or '')}\r\n\r\n{body or ''}"
    # The client may have given up while this IDE was frozen.
    with connection, contextlib.suppress(BrokenPipeError):
        connection.sendall(response.encode())


def echo_messages(connection: socket.socket, key: str) -> None:
    """Return the messages of a WebSocket, each of which is shorter than 126 bytes."""
    proof = base64.b64encode(hashlib.sha1((key + SOCKET_ID).encode(), usedforsecurity=False).digest())
    upgraded = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    with connection, connection.makefile("rb") as frames:
        connection.sendall(upgraded + b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n")
        while header := frames.read(6):
            mask, size = header[2:], header[1] & 0x7F
            message = bytes(byte ^ mask[index % 4] for index, byte in enumerate(frames.read(size)))
            connection.sendall(bytes([header[0], size]) + message)


if __name__ == "__main__":
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "mute" in sys.argv:
        print("about to wait forever", flush=True)  # noqa: T201
        signal.pause()
    while "held" in sys.argv and os.path.exists("/home/coder/hold"):  # noqa: PTH110
        time.sleep(0.05)
    serve(sys.argv[1], sys.argv[2])
