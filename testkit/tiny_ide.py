"""A minimal IDE: it serves requests within milliseconds and does a few things on request.

Usage: tiny_ide.py PORT PREFIX [mute|deaf]: `mute` never listens, `deaf` ignores SIGTERM.
"""

import json
import os
import signal
import socket
import subprocess
import sys


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
    if kind == "exit":
        os._exit(1)
    return "ok"


def serve(port: int, prefix: str) -> None:
    token = os.environ.get("TOKEN")
    with socket.create_server((os.environ.get("LISTEN", "127.0.0.1"), port)) as server:
        print("listening", flush=True)  # noqa: T201
        while True:
            connection, _ = server.accept()
            with connection:
                head = connection.recv(65536).decode()
                path = head.split()[1]
                known = token is None or f"Authorization: token {token}\r\n" in head
                allowed = known and path.startswith(prefix)
                status = "200 OK" if allowed else "403 Forbidden"
                body = answer(path.removeprefix(prefix)) if allowed else ""
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


if __name__ == "__main__":
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "mute" in sys.argv:
        print("about to wait forever", flush=True)  # noqa: T201
        signal.pause()
    serve(int(sys.argv[1]), sys.argv[2])
