"""What a client asks for: a target, and responses in its protocol."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from codehub.domain.egress import Refusal


class Failure(Enum):
    """Why a permitted connection could not be made."""

    UNKNOWN_NAME = "the name cannot be resolved; check its spelling"
    UNREACHABLE = "the server does not accept the connection; try again later"
    TIMEOUT = "the server does not answer; try again later"
    TOO_MANY = "this workspace has too many open connections; close some of them"
    NO_POLICY = "the network policy of this workspace cannot be read now; try again later"


@dataclass(frozen=True)
class Target:
    """The host, in canonical form, and port that a client asks for."""

    host: str
    port: int


class Request(Protocol):
    """A client's request, in either protocol."""

    @property
    def target(self) -> Target: ...

    @property
    def initial_data(self) -> bytes:
        """Return what to send to the server first."""

    def established(self) -> bytes:
        """Return the response for a connection that is open."""

    def refused(self, refusal: Refusal) -> bytes: ...

    def failed(self, failure: Failure) -> bytes: ...


class BadRequest(Exception):
    """The request is malformed; `response` is sent to the client."""

    def __init__(self, response: bytes) -> None:
        super().__init__("bad request")
        self.response = response


REASONS: dict[Refusal, str] = {
    Refusal.INVALID_NAME: "this is not a host name or an address in its standard form",
    Refusal.POLICY: "the network policy of this workspace does not allow it; its owner can see and change it "
    "on the page of the workspace",
    Refusal.PRIVATE_ADDRESS: "it is a private, local or reserved address, which workspaces never reach",
    Refusal.OWN_SERVER: "it is a server of CodeHub itself, which workspaces never reach",
}
