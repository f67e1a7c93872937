"""All settings, by concern."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from codehub.settings.types import (
    CONFLICT,
    IMAGE_OF_INSTANCE,
    STORAGE_OF_INSTANCE,
    Address,
    BucketName,
    Count,
    Cpus,
    Directory,
    DockerUrl,
    FilePath,
    Host,
    HttpUrl,
    InstanceBackend,
    Label,
    LogLevel,
    Port,
    PostgresUrl,
    RedisUrl,
    Seconds,
    SecretText,
    StepSeconds,
    StorageBackend,
    Switch,
)


class Concern(BaseSettings):
    """Settings that belong together; a variable is the prefix plus the field name in upper case."""

    # Messages of pydantic quote the input, which may be a secret.
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
        # Only load_settings reads the environment, so that it can report all errors at once.
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class General(Concern):
    """Settings of every process."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_")

    data_dir: Directory = Field(
        Path(".codehub"), description="Directory for the data of the embedded servers and for local homes."
    )
    public_base_url: HttpUrl | None = Field(
        None,
        description="URL of CodeHub for browsers; a workspace is at `/w/{id}/` below it. "
        "Unset means the address that the proxy listens on.",
    )
    log_level: LogLevel = Field("info", description="Lowest level to log.")
    log_format: Literal["json", "text"] = Field("text", description="`json` for machines, `text` for people.")


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
    max_body_bytes: Count = Field(1_048_576, description="Largest request body.")
    requests_per_second: Count = Field(
        100, description="Sustained requests per caller; four times as many in a burst."
    )
    sign_ins_per_minute: Count = Field(30, description="Sign-in attempts per address, for all users.")
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long requests may continue after the API was told to stop."
    )
    ready_file: Directory | None = Field(None, description="File that the API creates when it is ready.")


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
    drain_seconds: Seconds = Field(
        10, description="How long requests and WebSockets may continue after the proxy was told to stop."
    )
    activity_seconds: Seconds = Field(30, description="Time between two reports of used workspaces.")
    metrics_port: Port | None = Field(
        None,
        description="Loopback port for Prometheus; each worker takes the next one. Unset means none.",
    )
    ready_file: Directory | None = Field(None, description="File that the proxy creates when it is ready.")


class Database(Concern):
    """PostgreSQL, which holds the last observation of every workspace."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_DATABASE_")

    url: PostgresUrl | None = Field(
        None, description="PostgreSQL to use; unset means the embedded one of `codehub up`."
    )
    pool_size: Count = Field(10, description="Maximum connections per process.")
    connect_timeout_seconds: Seconds = Field(10, description="How long to wait for a new connection.")
    statement_timeout_seconds: Seconds = Field(30, description="How long one statement may run.")


class Redis(Concern):
    """Redis, the buffer for activity and the event bus."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_REDIS_")

    url: RedisUrl | None = Field(
        None, description="Redis to use; unset means the embedded one of `codehub up`."
    )


class S3(Concern):
    """S3, which stores the archives; set the endpoint and both keys together, or none of them."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_S3_")

    endpoint_url: HttpUrl | None = Field(
        None, description="S3 to use; unset means the embedded one of `codehub up`."
    )
    region: str = Field("us-east-1", description="Region of the bucket.")
    bucket: BucketName = Field("codehub", description="Bucket that holds the archives.")
    access_key: str | None = Field(None, description="Access key id.")
    secret_key: SecretText | None = Field(None, description="Secret access key.")


class Temporal(Concern):
    """Temporal, which runs the workflows."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_TEMPORAL_")

    address: Address | None = Field(
        None, description="Temporal frontend to use; unset means the embedded one of `codehub up`."
    )
    namespace: str = Field("default", description="Namespace of the workflows.")
    task_queue: str = Field("codehub", description="Main task queue, shared by the API and the workers.")
    ui_url: HttpUrl | None = Field(None, description="URL of the Temporal Web UI, for links.")
    api_key: SecretText | None = Field(None, description="API key, for Temporal Cloud.")
    tls_ca_file: FilePath | None = Field(
        None, description="PEM file of the CA of the server; unset means the CAs of this machine."
    )
    tls_cert_file: FilePath | None = Field(None, description="PEM file of the client certificate, for mTLS.")
    tls_key_file: FilePath | None = Field(
        None, description="PEM file of the unencrypted private key of that certificate."
    )
    tls_server_name: Host | None = Field(
        None, description="Name in the certificate of the server, if it differs from the host."
    )
    # Last, because it is checked against the others.
    tls: Switch | None = Field(
        None,
        description="Whether to use TLS; unset means yes if there is an API key or another TLS setting.",
    )

    @field_validator("tls")
    @classmethod
    def _is_not_contradicted(cls, tls: bool | None, info: ValidationInfo) -> bool | None:
        names = ("api_key", "tls_ca_file", "tls_cert_file", "tls_key_file", "tls_server_name")
        needing = [name for name in names if info.data.get(name) is not None]
        if tls is False and needing:
            other = f"{cls.model_config['env_prefix']}{needing[0].upper()}"
            raise PydanticCustomError(CONFLICT, "must be true or unset when {other} is set", {"other": other})
        return tls

    @property
    def uses_tls(self) -> bool:
        if self.tls is not None:
            return self.tls
        return any((self.api_key, self.tls_ca_file, self.tls_cert_file, self.tls_server_name))


class Workspaces(Concern):
    """Backends and image of new workspaces."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKSPACES_")

    instance_backend: InstanceBackend = Field(
        "local",
        description="What runs the IDEs; if unset, `codehub up` uses Docker if it can.",
    )
    storage_backend: StorageBackend = Field(
        default_factory=lambda fields: STORAGE_OF_INSTANCE[fields["instance_backend"]],
        description="What stores the homes; unset means the one that fits the instance backend.",
    )
    default_image_ref: str = Field(
        default_factory=lambda fields: IMAGE_OF_INSTANCE[fields["instance_backend"]],
        description="Default IDE or image; unset means one that fits the backend.",
    )

    @field_validator("storage_backend")
    @classmethod
    def _fits_the_instance_backend(cls, storage: StorageBackend, info: ValidationInfo) -> StorageBackend:
        instance = info.data.get("instance_backend")
        if instance and storage != STORAGE_OF_INSTANCE[instance]:
            requirement = (
                f"{STORAGE_OF_INSTANCE[instance]} when CODEHUB_WORKSPACES_INSTANCE_BACKEND is {instance}"
            )
            raise PydanticCustomError(CONFLICT, "must be {requirement}", {"requirement": requirement})
        return storage


class Docker(Concern):
    """Docker, for the backend `local-docker`."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_DOCKER_")

    url: DockerUrl = Field("unix:///var/run/docker.sock", description="URL of the Docker engine.")
    project: Label = Field("codehub", description="Label that separates installations that share an engine.")
    network: Label = Field(
        "codehub-workspaces", description="Network of the workspaces; they cannot reach each other."
    )
    memory_bytes: Count = Field(2_147_483_648, description="Memory limit per workspace.")
    cpus: Cpus = Field(2.0, description="CPU limit per workspace.")
    pids: Count = Field(1024, description="Limit of processes and threads per workspace.")
    start_seconds: StepSeconds = Field(60, description="How long an IDE may take to become ready.")
    stop_seconds: StepSeconds = Field(10, description="How long an IDE may take to exit before it is killed.")
    job_image: str = Field("codehub-storage-job:latest", description="Image of the storage jobs.")
    job_network: Label | None = Field(
        None,
        description="Network of the storage jobs; unset means the host's network if S3 is on loopback, "
        "otherwise Docker's default.",
    )
    job_memory_bytes: Count = Field(536_870_912, description="Memory limit per storage job.")


class Ttl(Concern):
    """When unused workspaces are stopped and archived."""

    model_config = SettingsConfigDict(env_prefix="TTL_")

    standby_seconds: Seconds = Field(
        600, description="Idle time after which a running workspace is stopped; use 10800 in production."
    )
    archive_seconds: Seconds = Field(
        1800, description="Time in standby after which it is archived; use 86400 in production."
    )


class Limits(Concern):
    """How many workspaces may run at once."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_LIMITS_")

    max_running_per_user: Count = Field(2, description="Maximum running workspaces per user.")
    max_running_global: Count = Field(100, description="Maximum running workspaces in total.")


class Gc(Concern):
    """When unneeded archives are removed."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_GC_")

    grace_seconds: Seconds = Field(7200, description="How long an archive that nothing needs is kept.")
    undelete_seconds: Seconds = Field(604800, description="How long a deleted workspace can be undeleted.")


class Retention(Concern):
    """How long rows are kept after what they describe has ended."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_RETENTION_")

    workspaces_days: Count = Field(
        90, description="Days to keep a deleted workspace; at least the undelete period."
    )
    archives_days: Count = Field(90, description="Days to keep the record of a removed archive.")
    events_days: Count = Field(90, description="Days to keep the audit trail.")
    sessions_days: Count = Field(90, description="Days to keep a session after its end.")
    tokens_days: Count = Field(90, description="Days to keep an API token after it expired or was revoked.")
    usage_days: Count = Field(7, description="Days to keep the times at which workspaces were used.")


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
        description="Other steps that one worker runs at once: so many sweeps, and so many stops, pulls and "
        "changes to volumes.",
    )
    stall_seconds: StepSeconds = Field(
        600,
        description="How long a step may make no progress before it is ended and retried; a step that makes "
        "progress may take any time.",
    )
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long steps may continue after the worker was told to stop."
    )
    metrics_port: Port | None = Field(None, description="Loopback port for Prometheus; unset means none.")
    ready_file: Directory | None = Field(None, description="File that the worker creates when it is ready.")


class Sweeps(Concern):
    """How often the sweeps run."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_SWEEPS_")

    observe_seconds: Seconds = Field(
        15, description="Time between two comparisons of listings with the database."
    )
    ttl_seconds: Seconds = Field(60, description="Time between two searches for unused workspaces.")
    gc_seconds: Seconds = Field(14400, description="Time between two garbage collections of archives.")
    retention_seconds: Seconds = Field(86400, description="Time between two removals of old rows.")


class Settings(BaseModel, frozen=True):
    """All settings, by concern; without arguments, the defaults."""

    general: General = Field(default_factory=General)
    api: Api = Field(default_factory=Api)
    proxy: Proxy = Field(default_factory=Proxy)
    database: Database = Field(default_factory=Database)
    redis: Redis = Field(default_factory=Redis)
    s3: S3 = Field(default_factory=S3)
    temporal: Temporal = Field(default_factory=Temporal)
    workspaces: Workspaces = Field(default_factory=Workspaces)
    docker: Docker = Field(default_factory=Docker)
    ttl: Ttl = Field(default_factory=Ttl)
    limits: Limits = Field(default_factory=Limits)
    gc: Gc = Field(default_factory=Gc)
    retention: Retention = Field(default_factory=Retention)
    worker: Worker = Field(default_factory=Worker)
    sweeps: Sweeps = Field(default_factory=Sweeps)

    @property
    def public_base_url(self) -> str:
        """The URL of CodeHub for browsers, without a slash at the end."""
        host = f"[{self.proxy.host}]" if ":" in self.proxy.host else self.proxy.host
        return self.general.public_base_url or f"http://{host}:{self.proxy.port}"
