"""Certificates, and a TLS endpoint in front of a plain-text server."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.needs import need_program

CHUNK_BYTES = 65536


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, in PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority for one test."""

    directory: Path
    own: Identity

    @classmethod
    def make(cls, directory: Path, name: str = "ca") -> "Authority":
        directory.mkdir(parents=True, exist_ok=True)
        own = Identity(directory / f"{name}.pem", directory / f"{name}.key")
        _openssl("req", "-x509", *_new_key(own, name), "-days", "2", "-out", str(own.certificate))
        return cls(directory, own)

    def issue(self, name: str) -> Identity:
        """Issue a certificate for a host or a client."""
        issued = Identity(self.directory / f"{name}.pem", self.directory / f"{name}.key")
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:{name}\n")
        _openssl("req", *_new_key(issued, name), "-out", str(request))
        signer = ("-CA", str(self.own.certificate), "-CAkey", str(self.own.key), "-CAcreateserial")
        _openssl(
            *("x509", "-req", "-in", str(request), *signer, "-days", "2"),
            *("-extfile", str(extensions), "-out", str(issued.certificate)),
        )
        return issued


@asynccontextmanager
async def tls_endpoint(
    server: Identity, target_port: int, client_authority: Authority | None = None
) -> AsyncIterator[int]:
    """Yield the port of an endpoint that forwards to the target; an authority checks client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.set_alpn_protocols(["h2"])
    if client_authority is not None:
        context.load_verify_locations(client_authority.own.certificate)
        context.verify_mode = ssl.CERT_REQUIRED

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", target_port)
        await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))

    running = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield running.sockets[0].getsockname()[1]
    finally:
        running.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


def _new_key(identity: Identity, name: str) -> tuple[str, ...]:
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    return (*kind, "-keyout", str(identity.key), "-subj", f"/CN={name}")


def _openssl(*arguments: str) -> None:
    command = (need_program("openssl"), *arguments)
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
