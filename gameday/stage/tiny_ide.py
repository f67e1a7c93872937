"""The IDE of the game day: stores files durably before it responds, and echoes WebSocket messages.

Usage, like code-server: `tiny_ide.py --bind-addr=HOST:PORT|--socket=PATH … HOME`. It is one file without
dependencies, because it runs inside the sandboxes and containers of workspaces.
"""

import base64
import contextlib
import errno
import hashlib
import json
import os
import signal
import socket
import socketserver
import struct
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILES = "files"
# Incomplete files of a killed IDE stay here.
PARTS = ".parts"
# Marks a response as the IDE's own: only then does a refusal mean that nothing changed.
SIGNATURE = "X-Tiny-IDE"
# If the variable is set, every request must have it in the header: a Pod can take over another one's address.
SECRET_VARIABLE = "TINY_IDE_SECRET"  # noqa: S105 (a name)
SECRET_HEADER = "X-Tiny-IDE-Secret"  # noqa: S105 (a name)
CHUNK_BYTES = 256 * 1024
WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
FIN, MASKED = 0x80, 0x80
CLOSE, PING, PONG = 0x8, 0x9, 0xA
TWO_BYTES_FOLLOW, EIGHT_BYTES_FOLLOW = 126, 127


def hash_file(path: Path) -> str | None:
    """Return the SHA-256 of a file, or None if it does not exist."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


def hash_tree(home: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that people wrote into a home, by name."""
    files = home / FILES
    found = ((path, hash_file(path)) for path in sorted(files.rglob("*")) if path.is_file())
    return {path.relative_to(files).as_posix(): digest for path, digest in found if digest is not None}


class Refused(Exception):
    """The request changed nothing; the status says why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextlib.contextmanager
def _refuse_when_disk_is_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise Refused(507) from error


class Home:
    """The files of a home. A change is atomic, and durable when it returns.

    It names the content that it replaces (None: no file), so that a delayed request cannot undo later ones.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._lock = threading.Lock()

    def path_of(self, name: str) -> Path:
        if any(part in {"", ".", ".."} for part in name.split("/")) or "\0" in name:
            raise Refused(400)
        return self.home / FILES / name

    def put(self, name: str, before: str | None, body: Iterator[bytes]) -> str:
        path = self.path_of(name)
        part = self._receive(body)
        try:
            with self._lock, _refuse_when_disk_is_full():
                self._require(path, before)
                path.parent.mkdir(parents=True, exist_ok=True)
                digest = hash_file(part)
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._sync_directories(path.parent)
        return str(digest)

    def delete(self, name: str, before: str | None) -> None:
        path = self.path_of(name)
        with self._lock:
            self._require(path, before)
            path.unlink()
        self._sync_directories(path.parent)

    def _receive(self, body: Iterator[bytes]) -> Path:
        with _refuse_when_disk_is_full():
            (self.home / PARTS).mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.home / PARTS)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.writelines(body)
                    file.flush()
                    os.fsync(descriptor)
            except BaseException:
                Path(name).unlink()
                raise
        return Path(name)

    def _require(self, path: Path, before: str | None) -> None:
        if hash_file(path) != before:
            raise Refused(412)

    def _sync_directories(self, directory: Path) -> None:
        while directory != self.home.parent:
            descriptor = os.open(directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            directory = directory.parent


class Handler(BaseHTTPRequestHandler):
    """Handles one client connection."""

    protocol_version = "HTTP/1.1"
    home: Home
    secret: str | None = None

    def parse_request(self) -> bool:
        """Refuse requests that are meant for another IDE, without the signature of this one."""
        if not super().parse_request():
            return False
        if self.secret is not None and self.headers.get(SECRET_HEADER) != self.secret:
            self.close_connection = True
            self.send_error(401)
            return False
        return True

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._respond(200, b'{"status": "alive"}')
        elif self.path == "/tree":
            self._respond(200, json.dumps(hash_tree(self.home.home)).encode())
        elif self.path == "/ws" and self.headers.get("Sec-WebSocket-Key"):
            self._echo()
        else:
            self._respond_with_file()

    def do_PUT(self) -> None:
        body = self._body()
        try:
            digest = self.home.put(self._name(), self._before(), body)
        except Refused as refused:
            # Read the whole body first: a client that still sends does not read the response.
            for _ in body:
                pass
            self._respond(refused.status)
        else:
            self._respond(200, digest.encode())

    def do_DELETE(self) -> None:
        try:
            self.home.delete(self._name(), self._before())
        except Refused as refused:
            self._respond(refused.status)
        else:
            self._respond(200)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in http.server)
        """Log nothing: the requests of a game would fill the log."""

    def _name(self) -> str:
        kind, _, name = self.path.removeprefix("/").partition("/")
        if kind != FILES:
            raise Refused(404)
        return urllib.parse.unquote(name)

    def _before(self) -> str | None:
        if self.headers.get("If-None-Match") == "*":
            return None
        if digest := self.headers.get("If-Match"):
            return str(digest)
        raise Refused(428)

    def _body(self) -> Iterator[bytes]:
        left = int(self.headers["Content-Length"])
        while left:
            chunk = self.rfile.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise ConnectionError("The client closed the connection before the end of the file.")
            left -= len(chunk)
            yield chunk

    def _respond_with_file(self) -> None:
        try:
            content = self.home.path_of(self._name()).read_bytes()
        except Refused as refused:
            self._respond(refused.status)
        except (FileNotFoundError, NotADirectoryError):
            self._respond(404)
        else:
            self._respond(200, content)

    def _respond(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header(SIGNATURE, "1")
        self.end_headers()
        self.wfile.write(body)

    def _echo(self) -> None:
        key = self.headers["Sec-WebSocket-Key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_GUID, usedforsecurity=False).digest())
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade")):
            self.send_header(name, value)
        self.send_header("Sec-WebSocket-Accept", accept.decode())
        self.end_headers()
        self.close_connection = True
        while frame := self._read_frame():
            first, payload = frame
            opcode = first & 0x0F
            if opcode != PONG:
                # Echo the frames of a fragmented message one by one, so the message stays intact.
                self._send_frame(FIN | PONG if opcode == PING else first, payload)
            if opcode == CLOSE:
                return

    def _read_frame(self) -> tuple[int, bytes] | None:
        head = self.rfile.read(2)
        if not head or not head[1] & MASKED:
            return None
        length = head[1] & ~MASKED
        if length == TWO_BYTES_FOLLOW:
            (length,) = struct.unpack("!H", self.rfile.read(2))
        elif length == EIGHT_BYTES_FOLLOW:
            (length,) = struct.unpack("!Q", self.rfile.read(8))
        mask = self.rfile.read(4)
        payload = self.rfile.read(length)
        if len(payload) < length:
            return None
        return head[0], _unmask(payload, mask)

    def _send_frame(self, first: int, payload: bytes) -> None:
        if len(payload) < TWO_BYTES_FOLLOW:
            length = bytes([len(payload)])
        elif len(payload) < 1 << 16:
            length = struct.pack("!BH", TWO_BYTES_FOLLOW, len(payload))
        else:
            length = struct.pack("!BQ", EIGHT_BYTES_FOLLOW, len(payload))
        self.wfile.write(bytes([first]) + length + payload)


def _unmask(payload: bytes, mask: bytes) -> bytes:
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    number = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return number.to_bytes(len(payload), "big")


class Server(ThreadingHTTPServer):
    """Uses one thread per connection."""

    daemon_threads = True
    request_queue_size = 128


class UnixServer(Server):
    """Listens on a UNIX socket."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        # Not that of HTTPServer, which looks up the name of the address.
        socketserver.TCPServer.server_bind(self)
        # Who can connect is decided by the directory, as with code-server's `--socket-mode=666`.
        Path(str(self.server_address)).chmod(0o666)


def open_server(arguments: list[str]) -> Server:
    options = dict(each.split("=", 1) for each in arguments if each.startswith("--") and "=" in each)
    if path := options.get("--socket"):
        return UnixServer(path, Handler)  # type: ignore[arg-type] # a path is the address of a UNIX socket
    host, _, port = options["--bind-addr"].rpartition(":")
    return Server((host, int(port)), Handler)


def main(arguments: list[str]) -> None:
    Handler.home = Home(Path(arguments[-1]))
    Handler.secret = os.environ.get(SECRET_VARIABLE)
    # The first process of a container ignores signals that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with open_server(arguments) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
