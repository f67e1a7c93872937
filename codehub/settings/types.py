"""The types of settings, each with the text that says what it allows."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, Secret, SecretStr

from codehub.domain.egress import parse_pattern

MASK = "********"
SECRET_PARAMETER = re.compile(r"([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&]*", re.IGNORECASE)
DOMAIN = re.compile(
    r"(?=.{1,200}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
)
MAX_PORT = 65535
MAX_RANGE = 2000
MAX_STEP_SECONDS = 86_400
CONFLICT = "conflict_with_another_setting"


def mask_url(url: str) -> str:
    """Mask what may be a password; if its position is unclear, mask everything but the scheme."""
    scheme, separator, rest = url.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return MASK
    credentials, at, address = rest.rpartition("@")
    if "?" in credentials:
        return f"{scheme}://{MASK}"
    user, colon, _ = credentials.partition(":")
    masked_credentials = f"{user}:{MASK}" if colon else MASK
    masked_address = SECRET_PARAMETER.sub(rf"\1{MASK}", address)
    return f"{scheme}://{masked_credentials}@{masked_address}" if at else f"{scheme}://{masked_address}"


class SecretUrl(Secret[str]):
    """A URL whose password is masked when it is printed, logged or dumped."""

    def _display(self) -> str:
        return mask_url(self.get_secret_value())


@dataclass(frozen=True)
class Allowed:
    """What a type allows; the text completes the sentence "must be ..."."""

    text: str


def _split_url(url: str, schemes: tuple[str, ...]) -> SplitResult:
    parts = urlsplit(url)
    # A socket has no host (postgresql:///name?host=/run); reading the port validates it.
    if parts.scheme not in schemes or parts.port == 0 or not (parts.netloc or parts.path):
        raise ValueError("not a URL of these schemes")
    return parts


def _check_secret_url(*schemes: str) -> Callable[[SecretUrl], SecretUrl]:
    def check(url: SecretUrl) -> SecretUrl:
        _split_url(url.get_secret_value(), schemes)
        return url

    return check


def _check_http_url(url: str) -> str:
    parts = _split_url(url, ("http", "https"))
    if not parts.hostname or "@" in url or parts.query or parts.fragment:
        raise ValueError("not a plain URL")
    # Paths are appended to the URL.
    return url.rstrip("/")


def _check_domain(domain: str) -> str:
    if not DOMAIN.fullmatch(domain) or domain.replace(".", "").isdecimal():
        raise ValueError("not a domain")
    return domain


def port_range(text: str) -> range:
    """Return the ports of a range that has been checked."""
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1)


def _check_port_range(text: str) -> str:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or not 0 < int(first) <= int(last) <= MAX_PORT:
        raise ValueError("not first-last")
    if int(last) - int(first) >= MAX_RANGE:
        raise ValueError("too many ports")
    return text


def _check_address(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[^/@\s]+", host) or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise ValueError("not host:port")
    return address


def split_networks(text: str | None) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(part for each in (text or "").split(",") if (part := each.strip()))


def _check_networks(text: str) -> str:
    for each in split_networks(text):
        ip_network(each, strict=False)
    return text


def _check_issuer(url: str) -> str:
    parts = urlsplit(_check_http_url(url))
    if parts.scheme != "https" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise ValueError("not https")
    # ID tokens must contain exactly this text, so keep a trailing slash.
    return url


def _split_list(text: object) -> object:
    return tuple(part for part in re.split(r"[,\s]+", text) if part) if isinstance(text, str) else text


def _parse_json(text: object) -> object:
    # A ValueError, as pydantic expects.
    return json.loads(text) if isinstance(text, str) else text


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(parse_pattern, names))


Directory = Annotated[Path, Allowed("a path")]
FilePath = Annotated[Path, Allowed("a path")]
Switch = Annotated[bool, Allowed("true or false")]
SecretText = Annotated[SecretStr, Allowed("text, never printed")]
Count = Annotated[int, Field(ge=1), Allowed("a whole number of at least 1")]
Bytes = Annotated[int, Field(ge=0, lt=2**63), Allowed("a whole number of bytes, or 0")]
Seconds = Annotated[int, Field(ge=1), Allowed("a whole number of seconds, at least 1")]
# The last use is recorded by the minute.
IdleSeconds = Annotated[int, Field(ge=300), Allowed("a whole number of seconds, at least 300")]
# Well below BACKSTOP in workflows/policies.py, so that a step ends by its own limit first.
StepSeconds = Annotated[
    int,
    Field(ge=1, le=MAX_STEP_SECONDS),
    Allowed(f"a whole number of seconds, 1 to {MAX_STEP_SECONDS}"),
]
Uid = Annotated[int, Field(ge=1000, lt=2**31), Allowed("a user id from 1000 to 2147483647")]
Port = Annotated[int, Field(ge=1, le=MAX_PORT), Allowed(f"a whole number from 1 to {MAX_PORT}")]
PortRange = Annotated[
    str,
    AfterValidator(_check_port_range),
    Allowed(f"up to {MAX_RANGE} ports, first-last, such as 9000-9099"),
]
Host = Annotated[str, Field(pattern=r"^[0-9A-Za-z.:_-]+$"), Allowed("a host name or an IP address")]
Networks = Annotated[
    str,
    AfterValidator(_check_networks),
    Allowed("comma-separated IP addresses or networks, such as 10.0.0.0/8"),
]
Address = Annotated[str, AfterValidator(_check_address), Allowed("host:port, such as temporal.example:7233")]
Domain = Annotated[
    str,
    BeforeValidator(str.lower),
    AfterValidator(_check_domain),
    Allowed("a domain without a port, such as workspaces.example"),
]
HttpUrl = Annotated[
    str,
    AfterValidator(_check_http_url),
    Allowed("an http:// or https:// URL without user, password or query"),
]
IssuerUrl = Annotated[
    str,
    AfterValidator(_check_issuer),
    Allowed("the https:// URL of the issuer, exactly as the provider spells it"),
]
Scopes = Annotated[
    str, Field(pattern=r"^(\S+ )*openid( \S+)*$"), Allowed("scopes separated by spaces, among them openid")
]
Names = Annotated[str, Allowed("names, separated by commas")]
PostgresUrl = Annotated[
    SecretUrl,
    AfterValidator(_check_secret_url("postgresql", "postgresql+asyncpg", "postgres")),
    Allowed("a postgresql:// URL"),
]
RedisUrl = Annotated[
    SecretUrl,
    AfterValidator(_check_secret_url("redis", "rediss", "unix")),
    Allowed("a redis://, rediss:// or unix:// URL"),
]
HostNames = Annotated[
    tuple[str, ...],
    BeforeValidator(_split_list),
    AfterValidator(_check_names),
    Allowed("names such as github.com or *.githubusercontent.com, separated by commas"),
]
Cpus = Annotated[float, Field(ge=0.01, le=1024), Allowed("a number from 0.01 to 1024")]
DockerUrl = Annotated[
    str,
    Field(pattern=r"^(unix:///[^\s?#]+|tcp://[^\s/?#@]+)$"),
    Allowed("a unix:///path or tcp://host:port URL"),
]
Label = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"),
    Allowed("a name of up to 63 letters, digits, dots, hyphens or underscores"),
]
ObjectName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"),
    Allowed("the name of an object: lower-case letters, digits, dots or hyphens"),
]
NamespaceName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"),
    Allowed("a name of up to 63 lower-case letters, digits or hyphens"),
]
ObjectNames = Annotated[
    tuple[str, ...], BeforeValidator(_split_list), Allowed("names of objects, separated by commas")
]
LabelMap = Annotated[
    dict[str, str], BeforeValidator(_parse_json), Allowed('a JSON object, such as {"disk": "ssd"}')
]
ObjectList = Annotated[
    tuple[dict[str, str | int], ...],
    BeforeValidator(_parse_json),
    Allowed('a JSON array of objects, such as [{"key": "workspaces", "operator": "Exists"}]'),
]
LabelsByImage = Annotated[
    dict[str, dict[str, str]],
    BeforeValidator(_parse_json),
    Allowed('a JSON object, such as {"registry.example/ide": {"codehub.io/port": "8888"}}'),
]
BucketName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"),
    Allowed("a bucket name: 3 to 63 lower-case letters, digits, dots or hyphens"),
]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(str.lower)]
InstanceBackend = Literal["local", "local-docker", "k8s"]
StorageBackend = Literal["local-dir", "docker-volume", "pvc"]

# On the local backend an image names an installed IDE.
IMAGE_OF_INSTANCE: Mapping[InstanceBackend, str] = {
    "local": "default",
    "local-docker": "codehub-workspace:latest",
    "k8s": "codehub-workspace:latest",
}
STORAGE_OF_INSTANCE: Mapping[InstanceBackend, StorageBackend] = {
    "local": "local-dir",
    "local-docker": "docker-volume",
    "k8s": "pvc",
}
