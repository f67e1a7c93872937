"""The configuration that all embedded servers use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codehub.embedded.certificates import Certificates
from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import Credentials, DataDir
from codehub.settings import Settings


@dataclass(frozen=True)
class StackConfig:
    """The configuration of the servers of one data directory; ports and credentials are kept."""

    data: DataDir
    settings: Settings
    ports: Mapping[str, int]
    credentials: Credentials = field(repr=False)


@dataclass(frozen=True)
class Server:
    """A server that is embedded unless its URL is set."""

    name: str
    title: str
    ports: tuple[str, ...]
    child: Callable[[StackConfig], Child]
    environment: Callable[[StackConfig], dict[str, str]]
    """Returns the settings that connect a CodeHub process to the server."""

    certificates: Callable[[DataDir], Certificates] | None = None
    """Returns the certificates for mutual TLS between the server and its clients."""
