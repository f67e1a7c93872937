"""SOCKS 5 (RFC 1928) without authentication: CONNECT to a name or an address."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from codehub.domain.egress import Refusal, parse_host
from egress.target import BadRequest, Failure, Target

VERSION = 5
NO_PASSWORD = b"\x05\x00"
_NO_METHOD = b"\x05\xff"
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_PORT_BYTES = 2
_GRANTED, _GENERAL, _NOT_ALLOWED, _HOST_UNREACHABLE, _REFUSED, _EXPIRED, _NO_COMMAND, _NO_ADDRESS_TYPE = (
    0, 1, 2, 4, 5, 6, 7, 8
)  # fmt: skip
_REPLIES = {
    Failure.UNKNOWN_NAME: _HOST_UNREACHABLE,
    Failure.UNREACHABLE: _REFUSED,
    Failure.TIMEOUT: _EXPIRED,
    Failure.TOO_MANY: _GENERAL,
    Failure.NO_POLICY: _GENERAL,
}


@dataclass(frozen=True)
class SocksRequest:
    """A request over SOCKS; the client gets reply codes."""

    target: Target
    initial_data: bytes = b""

    def established(self) -> bytes:
        return _reply(_GRANTED)

    def refused(self, _refusal: Refusal) -> bytes:
        return _reply(_NOT_ALLOWED)

    def failed(self, failure: Failure) -> bytes:
        return _reply(_REPLIES[failure])


def take_greeting(buffer: bytearray) -> bool:
    """Remove the list of methods from the buffer; return whether it was complete. Raise BadRequest."""
    end = 2 + buffer[1] if len(buffer) > 1 else 2
    if len(buffer) < end or len(buffer) < 2:  # noqa: PLR2004 (version and count)
        return False
    methods = bytes(buffer[2:end])
    del buffer[:end]
    if 0 not in methods:
        raise BadRequest(_NO_METHOD)
    return True


def take_request(buffer: bytearray) -> SocksRequest | None:
    """Remove a request from the buffer; return None while it is incomplete. Raise BadRequest."""
    if len(buffer) < 5:  # noqa: PLR2004 (everything before the address, and the length of a name)
        return None
    version, command, _, kind, length = buffer[:5]
    if version != VERSION or command != _CONNECT:
        raise BadRequest(_reply(_NO_COMMAND))
    start, size = {_IPV4: (4, 4), _NAME: (5, length), _IPV6: (4, 16)}.get(kind, (0, 0))
    if not start:
        raise BadRequest(_reply(_NO_ADDRESS_TYPE))
    end = start + size + _PORT_BYTES
    if len(buffer) < end:
        return None
    host = _parse_host(kind, bytes(buffer[start : start + size]))
    port = int.from_bytes(buffer[end - _PORT_BYTES : end])
    del buffer[:end]
    if host is None or not port:
        raise BadRequest(_reply(_NOT_ALLOWED))
    return SocksRequest(Target(host, port))


def _parse_host(kind: int, address: bytes) -> str | None:
    if kind == _NAME:
        return parse_host(address.decode("latin-1"))
    return str(IPv4Address(address) if kind == _IPV4 else IPv6Address(address))


def _reply(code: int) -> bytes:
    # The bound address, which clients ignore.
    return bytes((VERSION, code, 0, _IPV4)) + bytes(4 + _PORT_BYTES)
