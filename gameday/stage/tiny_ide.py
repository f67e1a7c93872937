"""The IDE of the game day: an answer of it is a promise about a file, and it echoes WebSocket messages.

Called like code-server: `tiny_ide.py --bind-addr=HOST:PORT … HOME`. One file and only the standard library,
because it runs inside the sandboxes and containers of workspaces.
"""

import base64
import contextlib
import errno
import hashlib
import json
import os
import signal
import struct
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILES = "files"
# What a killed IDE was writing stays here, where nobody takes it for a file.
PARTS = ".parts"
# Says that an answer is the IDE's own: only then does a refusal mean that nothing was changed.
SIGNATURE = "X-Tiny-IDE"
PIECE_BYTES = 256 * 1024
WEBSOCKET_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
FINAL, MASKED = 0x80, 0x80
CLOSE, PING, PONG = 0x8, 0x9, 0xA
TWO_BYTES_FOLLOW, EIGHT_BYTES_FOLLOW = 126, 127


def digest_of(path: Path) -> str | None:
    """The sha256 of a file's content; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


def tree_of(home: Path) -> dict[str, str]:
    """The files that people have written into a home, with the sha256 of each."""
    files = home / FILES
    found = ((path, digest_of(path)) for path in sorted(files.rglob("*")) if path.is_file())
    return {path.relative_to(files).as_posix(): digest for path, digest in found if digest is not None}


class Refused(Exception):
    """Nothing was changed; the status says why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextlib.contextmanager
def _full_disk_refuses() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise Refused(507) from error


class Home:
    """The files of a home. A change happens wholly or not at all, and is on the disk when it returns.

    It names the content that it replaces (None: there is no file), so that one that was held up on its way
    cannot undo what came after it.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._changing = threading.Lock()

    def locate(self, name: str) -> Path:
        if any(part in {"", ".", ".."} for part in name.split("/")) or "\0" in name:
            raise Refused(400)
        return self.home / FILES / name

    def put(self, name: str, before: str | None, body: Iterator[bytes]) -> str:
        path = self.locate(name)
        part = self._receive(body)
        try:
            with self._changing, _full_disk_refuses():
                self._compare(path, before)
                path.parent.mkdir(parents=True, exist_ok=True)
                digest = digest_of(part)
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._make_durable(path.parent)
        return str(digest)

    def delete(self, name: str, before: str | None) -> None:
        path = self.locate(name)
        with self._changing:
            self._compare(path, before)
            path.unlink()
        self._make_durable(path.parent)

    def _receive(self, body: Iterator[bytes]) -> Path:
        with _full_disk_refuses():
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

    def _compare(self, path: Path, before: str | None) -> None:
        if digest_of(path) != before:
            raise Refused(412)

    def _make_durable(self, directory: Path) -> None:
        while directory != self.home.parent:
            descriptor = os.open(directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            directory = directory.parent


class Conversation(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    home: Home

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, b'{"status": "alive"}')
        elif self.path == "/tree":
            self._answer(200, json.dumps(tree_of(self.home.home)).encode())
        elif self.path == "/ws" and self.headers.get("Sec-WebSocket-Key"):
            self._echo()
        else:
            self._answer_file()

    def do_PUT(self) -> None:
        body = self._body()
        try:
            digest = self.home.put(self._name(), self._before(), body)
        except Refused as refused:
            # Who still sends hears nothing, so everything has to be read first.
            for _ in body:
                pass
            self._answer(refused.status)
        else:
            self._answer(200, digest.encode())

    def do_DELETE(self) -> None:
        try:
            self.home.delete(self._name(), self._before())
        except Refused as refused:
            self._answer(refused.status)
        else:
            self._answer(200)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in http.server)
        """Say nothing: a day of requests would only fill the log."""

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
            piece = self.rfile.read(min(left, PIECE_BYTES))
            if not piece:
                raise ConnectionError("The client went away in the middle of a file.")
            left -= len(piece)
            yield piece

    def _answer_file(self) -> None:
        try:
            content = self.home.locate(self._name()).read_bytes()
        except Refused as refused:
            self._answer(refused.status)
        except (FileNotFoundError, NotADirectoryError):
            self._answer(404)
        else:
            self._answer(200, content)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header(SIGNATURE, "1")
        self.end_headers()
        self.wfile.write(body)

    def _echo(self) -> None:
        key = self.headers["Sec-WebSocket-Key"].encode()
        proof = base64.b64encode(hashlib.sha1(key + WEBSOCKET_SALT, usedforsecurity=False).digest())
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade")):
            self.send_header(name, value)
        self.send_header("Sec-WebSocket-Accept", proof.decode())
        self.end_headers()
        self.close_connection = True
        while frame := self._read_frame():
            first, payload = frame
            opcode = first & 0x0F
            if opcode != PONG:
                # Pieces of a message go back as they came: so the whole does, too.
                self._send_frame(FINAL | PONG if opcode == PING else first, payload)
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
    whole = (mask * (len(payload) // 4 + 1))[: len(payload)]
    number = int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")
    return number.to_bytes(len(payload), "big")


class Server(ThreadingHTTPServer):
    """A thread for each connection, as many as come."""

    daemon_threads = True
    request_queue_size = 128


def main(words: list[str]) -> None:
    address = next(word for word in words if word.startswith("--bind-addr=")).partition("=")[2]
    host, _, port = address.rpartition(":")
    Conversation.home = Home(Path(words[-1]))
    # The first process of a container ends by nothing that it does not ask for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with Server((host, int(port)), Conversation) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
