"""Finds what a `Host` names: a workspace, one of its ports, the main origin, or nothing."""

from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from codehub.domain.conditions import WorkspaceId
from codehub.origins import LOOPBACK, OriginMode, Origins
from proxy.request_kind import WorkspacePort, parse_label

MAX_CACHED = 4096


class Misdirected(Exception):
    """The host is where workspaces are, but is the origin of none."""


class UnknownNumber(Exception):
    """The port belongs to the workspace with this number, which has not been looked up yet."""

    def __init__(self, number: int) -> None:
        super().__init__(f"workspace number {number}")
        self.number = number


class Hosts:
    """Every host is the main origin's, except those that workspaces have or could have."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._suffix = origins.suffix
        self._domain = origins.domain
        main = urlsplit(origins.public_url)
        self._main = main.netloc.encode()
        self._main_is_loopback = main.hostname in LOOPBACK
        # A workspace keeps its number, and nobody else gets it.
        self._by_number: dict[int, WorkspaceId] = {}
        finders: dict[OriginMode, Callable[[bytes | None], WorkspaceId | WorkspacePort | None]] = {
            OriginMode.SUBDOMAIN: self._find_by_name,
            OriginMode.PORT: self._find_by_port,
            OriginMode.PATH: lambda _host: None,
        }
        # Nearly every request repeats a host, and this is on the way of all of them. Raises Misdirected or
        # UnknownNumber; None is the main origin.
        self.find = lru_cache(MAX_CACHED)(finders[origins.mode])

    def learn(self, number: int, workspace_id: WorkspaceId) -> None:
        self._by_number[number] = workspace_id

    def is_other_loopback(self, host: bytes | None) -> bool:
        """Return whether this is another name of the main host, where a browser would lack its cookies."""
        if not self._main_is_loopback or host is None or host == self._main:
            return False
        return _name_of(host) in LOOPBACK

    def _find_by_name(self, host: bytes | None) -> WorkspaceId | WorkspacePort | None:
        if host is None:
            return None
        text = host.decode("latin-1")
        if text.endswith(self._suffix):
            found = parse_label(text.removesuffix(self._suffix))
            if found is not None:
                return found
        # Other spellings are other origins to a browser: `{id}.LOCALHOST`, a dot at the end, another port.
        if _name_of(host).endswith(f".{self._domain}"):
            raise Misdirected
        return None

    def _find_by_port(self, host: bytes | None) -> WorkspaceId | None:
        name, _, port = (host or b"").decode("latin-1").rpartition(":")
        if not port.isdecimal() or int(port) not in self._origins.ports:
            return None
        # Other names of the host are other origins to a browser.
        if name != self._origins.host or port != str(int(port)):
            raise Misdirected
        number = int(port) - self._origins.ports.start + 1
        if number not in self._by_number:
            raise UnknownNumber(number)
        return self._by_number[number]


def _name_of(host: bytes) -> str:
    """Return the host without its port, as servers compare it."""
    name = host.decode("latin-1").lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].rstrip(".")
