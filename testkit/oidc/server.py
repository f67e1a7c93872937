"""Start the OpenID provider, register a client there, and sign in as a person does."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from testkit.processes import free_port, kill, spawn
from testkit.waiting import DEADLINE_SECONDS

START_SECONDS = 120
POLL_SECONDS = 0.05
ATTEMPTS = 3
# The provider calls deprecated parts of its own libraries.
ENVIRONMENT = {"PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True)
class RegisteredClient:
    """What the operator of CodeHub gets from the provider."""

    client_id: str
    client_secret: str


class OidcServer:
    """A provider that can be killed."""

    def __init__(self, directory: Path, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self._log = directory / "oidc.log"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Wait until the provider responds; return False if it ended instead."""
        command = (sys.executable, "-m", "testkit.oidc", str(self._port))
        self._process = process = spawn(command, self._log, {**os.environ, **ENVIRONMENT})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{self.issuer}/jwks")
                return True
            time.sleep(POLL_SECONDS)
        return False

    def kill(self) -> None:
        if self._process is not None:
            kill(self._process)

    def register(self, redirect_uri: str) -> RegisteredClient:
        created = httpx.post(
            f"{self.issuer}/oauth2/clients", json={"redirect_uris": [redirect_uri]}, timeout=DEADLINE_SECONDS
        )
        document = created.raise_for_status().json()
        return RegisteredClient(document["client_id"], document["client_secret"])

    def set_person(self, subject: str, **claims: object) -> None:
        httpx.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    def lie(self, **lies: Any) -> None:  # noqa: ANN401
        """Replace the current lies; without arguments, tell the truth."""
        httpx.put(f"{self.issuer}/lies", json=lies).raise_for_status()

    def authenticate(self, url: str, subject: str) -> str:
        """Sign in on the provider's page; return where it sends the browser."""
        response = httpx.post(url, data={"sub": subject}, timeout=DEADLINE_SECONDS)
        assert response.is_redirect, response.text
        return response.headers["location"]

    def deny(self, url: str) -> str:
        response = httpx.post(url, data={"action": "deny"}, timeout=DEADLINE_SECONDS)
        return response.headers["location"]


@contextlib.contextmanager
def running_provider(directory: Path) -> Iterator[OidcServer]:
    server = _start(directory)
    try:
        yield server
    finally:
        server.kill()


def _start(directory: Path) -> OidcServer:
    for _ in range(ATTEMPTS):
        server = OidcServer(directory, free_port())
        if server.start():
            return server
        # Another process took the port.
        server.kill()
    raise RuntimeError(f"the OpenID provider did not start; its log is in {directory}")
