"""The settings of every CodeHub process, and the only reader of the environment."""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    Secret,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

MASK = "********"
SECRET_PARAMETER = re.compile(r"([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&]*", re.IGNORECASE)
GREATEST_PORT = 65535
# Lower, and DB_URL is taken for REDIS_URL; a wrong suggestion is worse than none.
SIMILAR = 0.68
CONFLICT = "conflict_with_another_setting"


def mask_url(url: str) -> str:
    """Hide what may be a password; where its place is in doubt, hide all but the scheme."""
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
    """A URL that shows everything but its password when it is printed, logged or dumped."""

    def _display(self) -> str:
        return mask_url(self.get_secret_value())


@dataclass(frozen=True)
class Words:
    """What a type allows, in the words that complete "must be ..."."""

    text: str


def _split_url(url: str, schemes: tuple[str, ...]) -> SplitResult:
    parts = urlsplit(url)
    # Sockets have no host (postgresql:///name?host=/run), but reading the port still checks it.
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
    # Paths are appended to it.
    return url.rstrip("/")


def _check_address(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[^/@\s]+", host) or not port.isdecimal() or not 0 < int(port) <= GREATEST_PORT:
        raise ValueError("not host:port")
    return address


Directory = Annotated[Path, Words("a path")]
SecretText = Annotated[SecretStr, Words("text, never printed")]
Count = Annotated[int, Field(ge=1), Words("a whole number of at least 1")]
Seconds = Annotated[int, Field(ge=1), Words("a whole number of seconds, at least 1")]
Port = Annotated[int, Field(ge=1, le=GREATEST_PORT), Words(f"a whole number from 1 to {GREATEST_PORT}")]
Host = Annotated[str, Field(pattern=r"^[0-9A-Za-z.:_-]+$"), Words("a host name or an IP address")]
Address = Annotated[str, AfterValidator(_check_address), Words("host:port, such as temporal.example:7233")]
HttpUrl = Annotated[
    str, AfterValidator(_check_http_url), Words("an http:// or https:// URL without user, password or query")
]
PostgresUrl = Annotated[
    SecretUrl,
    AfterValidator(_check_secret_url("postgresql", "postgresql+asyncpg", "postgres")),
    Words("a postgresql:// URL"),
]
RedisUrl = Annotated[
    SecretUrl,
    AfterValidator(_check_secret_url("redis", "rediss", "unix")),
    Words("a redis://, rediss:// or unix:// URL"),
]
BucketName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"),
    Words("a bucket name: 3 to 63 lower-case letters, digits, dots or hyphens"),
]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(str.lower)]
InstanceBackend = Literal["local", "local-docker", "k8s"]
StorageBackend = Literal["local-dir", "docker-volume", "pvc"]

STORAGE_OF_INSTANCE: Mapping[InstanceBackend, StorageBackend] = {
    "local": "local-dir",
    "local-docker": "docker-volume",
    "k8s": "pvc",
}


class Concern(BaseSettings):
    """Settings that belong together; a variable is the prefix and the field's name in upper case."""

    # Pydantic's own messages quote the input, which may be a secret.
    model_config = SettingsConfigDict(frozen=True, hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # Only load_settings reads the environment, so that it can report everything at once.
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class General(Concern):
    """What every process needs to know."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_")

    data_dir: Directory = Field(
        Path(".codehub"), description="Where the embedded servers and local homes keep data."
    )
    public_base_url: HttpUrl = Field(
        "http://127.0.0.1:8080",
        description="Where browsers reach CodeHub; a workspace is at `/w/{id}/` below it.",
    )
    log_level: LogLevel = Field("info", description="The least severe messages to log.")
    log_format: Literal["json", "text"] = Field("text", description="`json` for machines, `text` for people.")


class Api(Concern):
    """Where the REST API and the dashboard listen."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_API_")

    host: Host = Field("127.0.0.1", description="Interface that the API binds to.")
    port: Port = Field(8081, description="Port that the API binds to.")


class Proxy(Concern):
    """Where the front door listens; browsers only ever talk to it."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_PROXY_")

    host: Host = Field("127.0.0.1", description="Interface that the proxy binds to.")
    port: Port = Field(8080, description="Port that the proxy binds to.")


class Database(Concern):
    """PostgreSQL, the last observation of every workspace."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_DATABASE_")

    url: PostgresUrl | None = Field(
        None, description="PostgreSQL to use; unset means the embedded one of `codehub up`."
    )
    pool_size: Count = Field(10, description="Connections that each process keeps open at most.")
    connect_timeout_seconds: Seconds = Field(10, description="How long to wait for a new connection.")
    statement_timeout_seconds: Seconds = Field(30, description="How long one statement may run.")


class Redis(Concern):
    """Redis, the buffer for activity and the bus for events."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_REDIS_")

    url: RedisUrl | None = Field(
        None, description="Redis to use; unset means the embedded one of `codehub up`."
    )


class S3(Concern):
    """S3, the store of the archives; the endpoint and both keys are set together or not at all."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_S3_")

    endpoint_url: HttpUrl | None = Field(
        None, description="S3 to use; unset means the embedded one of `codehub up`."
    )
    region: str = Field("us-east-1", description="Region of the bucket.")
    bucket: BucketName = Field("codehub", description="Bucket that holds the archives.")
    access_key: str | None = Field(None, description="Id of the access key.")
    secret_key: SecretText | None = Field(None, description="Secret of the access key.")


class Temporal(Concern):
    """Temporal, which runs every step of a workspace's life."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_TEMPORAL_")

    address: Address | None = Field(
        None, description="Temporal frontend to use; unset means the embedded one of `codehub up`."
    )
    namespace: str = Field("default", description="Namespace of the workflows.")
    task_queue: str = Field("codehub", description="Task queue that API and workers share.")
    ui_url: HttpUrl | None = Field(None, description="Temporal Web UI that operations link to.")
    api_key: SecretText | None = Field(None, description="API key, for Temporal Cloud.")


class Workspaces(Concern):
    """What a new workspace is made of."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKSPACES_")

    instance_backend: InstanceBackend = Field("local", description="What runs the web IDE of a workspace.")
    storage_backend: StorageBackend = Field(
        default_factory=lambda fields: STORAGE_OF_INSTANCE[fields["instance_backend"]],
        description="What holds its home; unset means the one that goes with the instance backend.",
    )
    default_image_ref: str = Field(
        "codehub-workspace:latest", description="Image of a workspace that names none."
    )

    @field_validator("storage_backend")
    @classmethod
    def _goes_with_the_instance(cls, storage: StorageBackend, info: ValidationInfo) -> StorageBackend:
        instance = info.data.get("instance_backend")
        if instance and storage != STORAGE_OF_INSTANCE[instance]:
            requirement = (
                f"{STORAGE_OF_INSTANCE[instance]} when CODEHUB_WORKSPACES_INSTANCE_BACKEND is {instance}"
            )
            raise PydanticCustomError(CONFLICT, "must be {requirement}", {"requirement": requirement})
        return storage


class Ttl(Concern):
    """How long an unused workspace keeps its compute and its disk."""

    model_config = SettingsConfigDict(env_prefix="TTL_")

    standby_seconds: Seconds = Field(
        600, description="Idle time after which a running workspace is stopped; 10800 suits production."
    )
    archive_seconds: Seconds = Field(
        1800, description="Time in standby after which it is archived; 86400 suits production."
    )


class Limits(Concern):
    """How many workspaces may run at once."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_LIMITS_")

    max_running_per_user: Count = Field(2, description="Workspaces that one user may run at once.")
    max_running_global: Count = Field(100, description="Workspaces that may run at once in all.")


class Gc(Concern):
    """When archives that nothing needs are removed."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_GC_")

    grace_seconds: Seconds = Field(
        7200, description="How long an orphaned archive is kept, and undelete works."
    )


class Settings(BaseModel, frozen=True):
    """Everything that can be configured, by concern; without arguments, the defaults."""

    general: General = Field(default_factory=General)
    api: Api = Field(default_factory=Api)
    proxy: Proxy = Field(default_factory=Proxy)
    database: Database = Field(default_factory=Database)
    redis: Redis = Field(default_factory=Redis)
    s3: S3 = Field(default_factory=S3)
    temporal: Temporal = Field(default_factory=Temporal)
    workspaces: Workspaces = Field(default_factory=Workspaces)
    ttl: Ttl = Field(default_factory=Ttl)
    limits: Limits = Field(default_factory=Limits)
    gc: Gc = Field(default_factory=Gc)


# A variable that makes no sense unless the others are set too.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "CODEHUB_S3_ENDPOINT_URL": ("CODEHUB_S3_ACCESS_KEY", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_ACCESS_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_SECRET_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_ACCESS_KEY"),
    "CODEHUB_TEMPORAL_API_KEY": ("CODEHUB_TEMPORAL_ADDRESS",),
}

CONCERNS: Mapping[str, type[Concern]] = {
    name: concern
    for name, field in Settings.model_fields.items()
    if isinstance(concern := field.annotation, type) and issubclass(concern, Concern)
}


def _parts(annotation: object) -> Iterator[object]:
    """Everything nested in an annotation: the members of unions, the choices of literals, the notes."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


@dataclass(frozen=True)
class Variable:
    """An environment variable and the field that it fills."""

    name: str
    concern: str
    field_name: str
    description: str
    parts: tuple[object, ...]

    @property
    def allowed(self) -> str:
        """The words that complete "must be ..."."""
        choices = [part for part in self.parts if isinstance(part, str)]
        words = [part.text for part in self.parts if isinstance(part, Words)]
        return f"one of {', '.join(choices)}" if choices else words[0] if words else "text"

    def is_set(self, settings: Settings) -> bool:
        concern: Concern = getattr(settings, self.concern)
        return self.field_name in concern.model_fields_set

    def printable_value(self, settings: Settings) -> str | int | None:
        """The value in effect, with what is secret in it masked; None when unset."""
        value = getattr(getattr(settings, self.concern), self.field_name)
        if isinstance(value, SecretStr):
            return MASK
        return value if isinstance(value, int | None) else str(value)

    def printable_text(self, text: str) -> str:
        """Text from the environment, right or wrong, with what may be secret in it masked."""
        if SecretStr in self.parts:
            return MASK
        return mask_url(text) if SecretUrl in self.parts or "://" in text else text


VARIABLES: tuple[Variable, ...] = tuple(
    Variable(
        name=f"{concern.model_config['env_prefix']}{field_name.upper()}",
        concern=concern_name,
        field_name=field_name,
        description=field.description or "",
        parts=(*_parts(field.annotation), *field.metadata),
    )
    for concern_name, concern in CONCERNS.items()
    for field_name, field in concern.model_fields.items()
)


class SettingsError(Exception):
    """One sentence for each wrong setting; none of them contains a secret."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the environment, or raise SettingsError with all that is wrong."""
    texts = _texts(os.environ if environment is None else environment)
    concerns: dict[str, Concern] = {}
    problems: list[str] = []
    for name, concern in CONCERNS.items():
        variables = {
            each.field_name: each for each in VARIABLES if each.concern == name and each.name in texts
        }
        try:
            concerns[name] = concern.model_validate(
                {field: texts[each.name] for field, each in variables.items()}
            )
        except ValidationError as error:
            problems += _explain(error, variables, texts)
    problems += _explain_missing(texts)
    # Raised outside of the handler, so that no traceback goes on about pydantic's own error.
    if problems:
        raise SettingsError(problems)
    return Settings.model_validate(concerns)


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """The CODEHUB_ variables that nobody reads, each with the known name that was probably meant."""
    # Compared without the prefix, which alone would make every name look similar.
    known = {variable.name.removeprefix("CODEHUB_"): variable.name for variable in VARIABLES}
    suggestions: dict[str, str | None] = {}
    for name in sorted(os.environ if environment is None else environment):
        if (
            name.startswith("CODEHUB_")
            and not name.startswith("CODEHUB_TEST_")
            and name not in known.values()
        ):
            matches = difflib.get_close_matches(name.removeprefix("CODEHUB_"), known, 1, SIMILAR)
            suggestions[name] = known[matches[0]] if matches else None
    return suggestions


def _texts(environment: Mapping[str, str]) -> dict[str, str]:
    # Compose files set unused variables to nothing, and secrets read from files end in a newline.
    stripped = {variable.name: environment.get(variable.name, "").strip() for variable in VARIABLES}
    return {name: text for name, text in stripped.items() if text}


def _explain(
    error: ValidationError, variables: Mapping[str, Variable], texts: Mapping[str, str]
) -> Iterator[str]:
    for details in error.errors(include_input=False, include_url=False):
        variable = variables.get(str(details["loc"][0]))
        # A default that was derived from a wrong value is no mistake of its own.
        if variable is not None:
            reason = details["msg"] if details["type"] == CONFLICT else f"must be {variable.allowed}"
            yield f"{variable.name}={variable.printable_text(texts[variable.name])}: {reason}"


def _explain_missing(texts: Mapping[str, str]) -> Iterator[str]:
    reasons = {needed: name for name in texts for needed in NEEDS.get(name, ()) if needed not in texts}
    for needed, name in reasons.items():
        yield f"{needed} is not set: it must be set when {name} is"
