"""Reads the labels of an image that describe its IDE."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codehub.health import Headers

PREFIX = "codehub.io/"
# Labels are untrusted, so only these headers can be added to requests.
SECRET_HEADER = re.compile(r"(?:Authorization|Cookie|X-[A-Za-z-]+): [ -:<-~]*\{secret\}")


@dataclass(frozen=True)
class ImageTraits:
    """The labels of an image that describe its IDE. The defaults are those of code-server."""

    ide: str = "code-server"
    port: int = 8080
    health_path: str = "/healthz"
    keep_prefix: bool = False
    read_only_root: bool = False
    # The variable that receives the secret of the instance, and the header that carries it.
    secret_variable: str = ""
    secret_header: str = ""
    # The agent's port for connections to other ports; None means no agent.
    agent_port: int | None = None
    # These arguments make the IDE listen on a UNIX socket at {socket} instead of the port.
    socket_arguments: str = ""

    def headers(self, secret: str) -> Headers:
        """Return the header that authenticates a request to an instance with this secret."""
        # Without the variable, only the agent knows the secret.
        if not secret or not self.secret_variable or not SECRET_HEADER.fullmatch(self.secret_header):
            return ()
        name, _, value = self.secret_header.partition(": ")
        return ((name, value.replace("{secret}", secret)),)


def traits_from_labels(labels: Mapping[str, str] | None) -> ImageTraits:
    """Read the traits from the labels of an image, or of a container, which inherits them."""
    found = labels or {}
    default = ImageTraits()
    return ImageTraits(
        ide=found.get(f"{PREFIX}ide", default.ide),
        port=_port(found.get(f"{PREFIX}port")) or default.port,
        health_path=found.get(f"{PREFIX}health-path", default.health_path),
        keep_prefix=found.get(f"{PREFIX}keep-prefix") == "true",
        read_only_root=found.get(f"{PREFIX}read-only-root") == "true",
        secret_variable=found.get(f"{PREFIX}secret-variable", ""),
        secret_header=found.get(f"{PREFIX}secret-header", ""),
        agent_port=_port(found.get(f"{PREFIX}agent-port")),
        socket_arguments=found.get(f"{PREFIX}socket-arguments", ""),
    )


def _port(label: str | None) -> int | None:
    return int(label) if label is not None and label.isdecimal() else None
