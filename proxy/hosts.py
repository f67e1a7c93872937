"""Maps a `Host` to a workspace, one of its ports, or the main origin."""

from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from codehub.domain.conditions import WorkspaceId
from codehub.origins import LOOPBACK, OriginMode, Origins
from proxy.request_kind import WorkspacePort, parse_label

MAX_CACHED = 4096


class Misdirected(Exception):
    """The host is in the workspaces' domain or port range, but no workspace has it."""


class UnknownNumber(Exception):
    """The workspace with this number has not been looked up yet."""

    def __init__(self, number: int) -> None:
        super().__init__(f"workspace number {number}")
        self.number = number


class Hosts:
    """A host belongs to the main origin unless a workspace has it or could have it."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._suffix = origins.suffix
        self._domain = origins.domain
        main = urlsplit(origins.public_url)
        self._main = main.netloc.encode()
        self._main_is_loopback = main.hostname in LOOPBACK
        # Numbers are never reassigned, so this cache needs no eviction.
        self._by_number: dict[int, WorkspaceId] = {}
        finders: dict[OriginMode, Callable[[bytes | None], WorkspaceId | WorkspacePort | None]] = {
            OriginMode.SUBDOMAIN: self._find_by_name,
            OriginMode.PORT: self._find_by_port,
            OriginMode.PATH: lambda _host: None,
        }
        # Cached, because every request passes here. Returns None for the main origin; raises Misdirected or
        # UnknownNumber.
        self.find = lru_cache(MAX_CACHED)(finders[origins.mode])

    def learn(self, number: int, workspace_id: WorkspaceId) -> None:
        self._by_number[number] = workspace_id

    def is_other_loopback(self, host: bytes | None) -> bool:
        """Return whether this is another loopback name of the main host; browsers send it no cookies."""
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
        # To a browser, other spellings are other origins: `{id}.LOCALHOST`, a trailing dot, another port.
        if _name_of(host).endswith(f".{self._domain}"):
            raise Misdirected
        return None

    def _find_by_port(self, host: bytes | None) -> WorkspaceId | None:
        name, _, port = (host or b"").decode("latin-1").rpartition(":")
        if not port.isdecimal() or int(port) not in self._origins.ports:
            return None
        # To a browser, other names of the host are other origins.
        if name != self._origins.host or port != str(int(port)):
            raise Misdirected
        number = int(port) - self._origins.ports.start + 1
        if number not in self._by_number:
            raise UnknownNumber(number)
        return self._by_number[number]


def _name_of(host: bytes) -> str:
    """Return the normalized host name without its port."""
    name = host.decode("latin-1").lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].rstrip(".")
