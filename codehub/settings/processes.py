"""Settings of CodeHub's own processes."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from codehub.domain.egress import EgressMode
from codehub.settings.concern import Concern
from codehub.settings.types import (
    CONFLICT,
    Address,
    Count,
    Directory,
    Host,
    HostNames,
    HttpUrl,
    IdleSeconds,
    IssuerUrl,
    LogLevel,
    Names,
    Networks,
    Port,
    Scopes,
    Seconds,
    SecretText,
    StepSeconds,
    Switch,
)


class General(Concern):
    """Settings of every process."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_")

    data_dir: Directory = Field(
        Path(".codehub"), description="Directory for the data of the embedded servers and for local homes."
    )
    public_base_url: HttpUrl | None = Field(
        None,
        description="URL of CodeHub for browsers. Unset means the address that the proxy listens on, "
        "as `localhost` if that is loopback.",
    )
    log_level: LogLevel = Field("info", description="Lowest level to log.")
    log_format: Literal["json", "text"] = Field("text", description="`json` for programs, `text` for people.")


class Api(Concern):
    """The REST API and the dashboard."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_API_")

    host: Host = Field("127.0.0.1", description="Interface that the API listens on.")
    port: Port = Field(8081, description="Port that the API listens on.")
    trusted_proxies: str = Field(
        "127.0.0.1",
        description="Comma-separated addresses whose X-Forwarded-For and -Proto headers are trusted.",
    )
    session_seconds: Seconds = Field(1_209_600, description="How long a session lasts; two weeks by default.")
    session_idle_seconds: IdleSeconds = Field(
        259_200, description="How long a session lasts without use; three days by default."
    )
    confirm_seconds: Seconds = Field(
        300,
        description="How long after entering the password a session can create tokens and change "
        "accounts; then CodeHub asks for it again.",
    )
    admin_second_factor: Literal["optional", "required"] = Field(
        "optional",
        description="Whether administrators with a password need an authenticator app to administer.",
    )
    max_body_bytes: Count = Field(1_048_576, description="Largest request body.")
    requests_per_second: Count = Field(
        100, description="Sustained requests per caller; four times as many in a burst."
    )
    sign_ins_per_minute: Count = Field(30, description="Sign-in attempts per address, for all users.")
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long requests may continue after the API was told to stop."
    )
    ready_file: Directory | None = Field(None, description="File that the API creates when it is ready.")


class Oidc(Concern):
    """Signing in through an OpenID provider; set the issuer and the client id together, or neither."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_OIDC_")

    issuer: IssuerUrl | None = Field(
        None, description="Issuer of the provider; unset means that people sign in with passwords only."
    )
    client_id: str | None = Field(None, description="Client id of CodeHub at the provider.")
    client_secret: SecretText | None = Field(None, description="Client secret; unset for a public client.")
    name: str | None = Field(
        None, description="Name of the provider on the sign-in page; unset means `single sign-on`."
    )
    scopes: Scopes | None = Field(
        None, description="Scopes to request from the provider; unset means `openid profile email`."
    )
    username_claim: str = Field(
        "preferred_username", description="Claim that suggests the name of a new account."
    )
    groups_claim: str = Field("groups", description="Claim that lists the groups of a person.")
    allowed_groups: Names | None = Field(
        None, description="Groups that may sign in, separated by commas; unset means everybody may."
    )
    admin_groups: Names | None = Field(
        None,
        description="Groups whose members are administrators, checked at each sign-in; unset means that "
        "roles are managed in CodeHub.",
    )
    password_sign_in: Literal["everyone", "administrators"] = Field(
        "everyone",
        description="Who may sign in with a password; `administrators` lets you in while the provider is "
        "down.",
    )


class Proxy(Concern):
    """The proxy; browsers connect only to it."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_PROXY_")

    host: Host = Field("127.0.0.1", description="Interface that the proxy listens on.")
    port: Port = Field(8080, description="Port that the proxy listens on.")
    api_url: HttpUrl | None = Field(
        None, description="URL of the API; unset means the address in the settings of the API."
    )
    workers: Count = Field(1, description="Processes that share the port; `--workers` overrides it.")
    connections: Count = Field(10_000, description="Maximum connections per process.")
    connections_per_user: Count = Field(500, description="Maximum connections per user and process.")
    connections_per_address: Count = Field(
        1000, description="Maximum connections per client address (IPv6: per /64) and process."
    )
    trusted_proxies: Networks | None = Field(
        None,
        description="Comma-separated addresses or networks of reverse proxies in front of the proxy, whose "
        "X-Forwarded-For names the client; unset means none.",
    )
    body_bytes_per_second: Count = Field(
        1024, description="Lowest average rate of a request body, after pauses of a minute in total."
    )
    drain_seconds: Seconds = Field(
        10, description="How long requests and WebSockets may continue after the proxy was told to stop."
    )
    activity_seconds: Seconds = Field(
        30, description="Time between two reports of which workspaces are in use."
    )
    metrics_port: Port | None = Field(
        None,
        description="Port for Prometheus; each worker takes the next one. Unset means none.",
    )
    metrics_host: Host = Field("127.0.0.1", description="Interface of that port.")
    ready_file: Directory | None = Field(None, description="File that the proxy creates when it is ready.")


class Egress(Concern):
    """The egress gateway, through which workspaces connect to the outside."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_EGRESS_")

    mode: EgressMode = Field(
        EgressMode.OPEN,
        description="Network policy of workspaces: `open` permits all public names, `allow-list` only "
        "those in CODEHUB_EGRESS_NAMES, `none` nothing.",
    )
    names: HostNames = Field(
        (),
        description="Comma-separated names for `allow-list`; `*.example.org` means all names below "
        "example.org.",
    )
    owners_may_loosen: Switch = Field(
        default=False,
        description="Whether owners may choose any policy for their workspaces; otherwise only a "
        "stricter one.",
    )
    refused_networks: Networks | None = Field(
        None,
        description="Comma-separated networks that workspaces never reach, such as 203.0.113.0/24, besides "
        "private and local ones.",
    )
    socket: Directory | None = Field(
        None,
        description="UNIX socket that the gateway listens on; unset means `run/egress/gateway.sock` in the "
        "data directory.",
    )
    address: Address | None = Field(
        None, description="host:port that it also listens on, for instances that cannot use the socket."
    )
    key: SecretText | None = Field(
        None,
        description="Secret from which the workspaces' tokens are derived; `codehub up` generates one.",
    )
    connections: Count = Field(4096, description="Maximum connections of all workspaces.")
    connections_per_workspace: Count = Field(256, description="Maximum connections of one workspace.")
    lookups_per_workspace: Count = Field(
        8, description="Maximum simultaneous name lookups of one workspace; others wait."
    )
    head_seconds: Seconds = Field(10, description="How long a client may take to send its request.")
    connect_seconds: Seconds = Field(10, description="How long resolving a name and connecting may take.")
    idle_seconds: Seconds = Field(900, description="How long a connection may stay open without traffic.")
    refresh_seconds: Seconds = Field(2, description="Time until a changed policy applies.")
    ready_file: Directory | None = Field(None, description="File that the gateway creates when it is ready.")

    @field_validator("names")
    @classmethod
    def _fit_the_mode(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if names and info.data.get("mode") is not EgressMode.ALLOW_LIST:
            raise PydanticCustomError(CONFLICT, "must be unset unless CODEHUB_EGRESS_MODE is allow-list")
        return names


class Worker(Concern):
    """The process that runs workflows and activities."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKER_")

    concurrent_archives: Count | None = Field(
        None, description="Archives that one worker makes at once; unset means one per CPU."
    )
    concurrent_restores: Count | None = Field(
        None, description="Restores that one worker runs at once; unset means one per CPU."
    )
    concurrent_starts: Count | None = Field(
        None, description="IDEs that one worker starts at once; unset means two per CPU, at least 4."
    )
    concurrent_activities: Count = Field(
        100,
        description="Other steps that one worker runs at once: this many sweeps, and this many stops, "
        "pulls and changes to volumes.",
    )
    stall_seconds: StepSeconds = Field(
        600,
        description="How long a step may go without progress before it is ended and retried; a step that "
        "makes progress has no time limit.",
    )
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long steps may continue after the worker was told to stop."
    )
    metrics_port: Port | None = Field(None, description="Port for Prometheus; unset means none.")
    metrics_host: Host = Field("127.0.0.1", description="Interface of that port.")
    ready_file: Directory | None = Field(None, description="File that the worker creates when it is ready.")


class Sweeps(Concern):
    """How often the sweeps run."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_SWEEPS_")

    observe_seconds: Seconds = Field(
        15, description="Time between two observe sweeps, which compare all providers with the database."
    )
    ttl_seconds: Seconds = Field(60, description="Time between two searches for unused workspaces.")
    gc_seconds: Seconds = Field(14400, description="Time between two garbage collections of archives.")
    disk_seconds: Seconds = Field(60, description="Time between two measurements of disk usage.")
    retention_seconds: Seconds = Field(86400, description="Time between two removals of old rows.")
