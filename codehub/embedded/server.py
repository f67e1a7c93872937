"""What all embedded servers have in common: where they are kept, and how they are made and found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codehub.embedded.children import Child
from codehub.embedded.credentials import Credentials
from codehub.embedded.data_dir import DataDir
from codehub.settings import Settings


@dataclass(frozen=True)
class Place:
    """One data directory: ports and credentials stay the same from start to start."""

    data: DataDir
    settings: Settings
    ports: Mapping[str, int]
    credentials: Credentials = field(repr=False)


@dataclass(frozen=True)
class Server:
    """A server that is started here, unless its URL is set."""

    name: str
    title: str
    ports: tuple[str, ...]
    child: Callable[[Place], Child]
    environment: Callable[[Place], dict[str, str]]
    """The settings that lead a CodeHub process to it."""
