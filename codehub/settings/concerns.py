"""Everything that can be configured, by concern."""

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
    public_base_url: HttpUrl | None = Field(
        None,
        description="Where browsers reach CodeHub; a workspace is at `/w/{id}/` below it. "
        "Unset means the address that the proxy listens on.",
    )
    log_level: LogLevel = Field("info", description="The least severe messages to log.")
    log_format: Literal["json", "text"] = Field("text", description="`json` for machines, `text` for people.")


class Api(Concern):
    """Where the REST API and the dashboard listen."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_API_")

    host: Host = Field("127.0.0.1", description="Interface that the API binds to.")
    port: Port = Field(8081, description="Port that the API binds to.")
    trusted_proxies: str = Field(
        "127.0.0.1",
        description="Addresses, with commas between, whose X-Forwarded-For and -Proto are believed.",
    )
    session_seconds: Seconds = Field(1_209_600, description="How long a sign-in lasts; two weeks unless set.")
    max_body_bytes: Count = Field(1_048_576, description="Largest request body that is read.")
    requests_per_second: Count = Field(
        100, description="Requests that one caller may make, sustained; four times as many in a burst."
    )
    sign_ins_per_minute: Count = Field(
        30, description="Sign-in attempts from one address, whatever the user."
    )
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long requests may go on after the API was asked to stop."
    )
    ready_file: Directory | None = Field(
        None, description="File that the API makes once it answers, for whoever waits for it."
    )


class Proxy(Concern):
    """Where the front door listens; browsers only ever talk to it."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_PROXY_")

    host: Host = Field("127.0.0.1", description="Interface that the proxy binds to.")
    port: Port = Field(8080, description="Port that the proxy binds to.")
    api_url: HttpUrl | None = Field(
        None, description="Where the API is; unset means the address that the API's own settings name."
    )
    workers: Count = Field(1, description="Processes that share the port; `--workers` overrides it.")
    connections: Count = Field(10_000, description="Connections that one process holds at once.")
    connections_per_user: Count = Field(
        500, description="Connections that one user may hold at once in one process."
    )
    drain_seconds: Seconds = Field(
        10, description="How long requests and WebSockets may go on after the proxy was asked to stop."
    )
    activity_seconds: Seconds = Field(
        30, description="Time between two reports of which workspaces have been used."
    )
    metrics_port: Port | None = Field(
        None,
        description="Loopback port for Prometheus; the next worker takes the next port. Unset means none.",
    )
    ready_file: Directory | None = Field(
        None, description="File that the proxy makes once it answers, for whoever waits for it."
    )


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
    tls_ca_file: FilePath | None = Field(
        None, description="PEM file of the CA that signed the server; unset means those of this machine."
    )
    tls_cert_file: FilePath | None = Field(
        None, description="PEM file of our own certificate, for a server that asks for one (mTLS)."
    )
    tls_key_file: FilePath | None = Field(
        None, description="PEM file of the private key of that certificate, not encrypted."
    )
    tls_server_name: Host | None = Field(
        None, description="Name in the server's certificate, where it is not the host of the address."
    )
    # The last one: it is checked against the others.
    tls: Switch | None = Field(
        None,
        description="Whether to use TLS; unset means yes with an API key or any other of the TLS settings.",
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
    """What a new workspace is made of."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKSPACES_")

    instance_backend: InstanceBackend = Field(
        "local",
        description="What runs the web IDE of a workspace; unset, `codehub up` takes Docker where it can.",
    )
    storage_backend: StorageBackend = Field(
        default_factory=lambda fields: STORAGE_OF_INSTANCE[fields["instance_backend"]],
        description="What holds its home; unset means the one that goes with the instance backend.",
    )
    default_image_ref: str = Field(
        default_factory=lambda fields: IMAGE_OF_INSTANCE[fields["instance_backend"]],
        description="IDE or image of a workspace that names none; unset means one that fits the backend.",
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


class Docker(Concern):
    """Docker, where workspaces are containers (backend `local-docker`)."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_DOCKER_")

    url: DockerUrl = Field("unix:///var/run/docker.sock", description="Engine that runs the containers.")
    project: Label = Field(
        "codehub", description="Marks what belongs to this installation, where several share an engine."
    )
    network: Label = Field(
        "codehub-workspaces", description="Network of the workspaces; made without a way between them."
    )
    memory_bytes: Count = Field(2_147_483_648, description="Memory that one workspace may use.")
    cpus: Cpus = Field(2.0, description="Processors that one workspace may use.")
    pids: Count = Field(1024, description="Processes and threads that one workspace may have.")
    start_seconds: StepSeconds = Field(60, description="How long an IDE may take to become ready.")
    stop_seconds: StepSeconds = Field(10, description="How long an IDE may take to end before it is killed.")
    job_image: str = Field("codehub-storage-job:latest", description="Image of the storage jobs.")
    job_network: Label | None = Field(
        None,
        description="Network of the storage jobs; unset means the host's for an S3 on its loopback "
        "interface, else Docker's default.",
    )
    job_memory_bytes: Count = Field(536_870_912, description="Memory that one storage job may use.")


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

    grace_seconds: Seconds = Field(7200, description="How long an archive that nothing needs is kept.")
    undelete_seconds: Seconds = Field(
        604800, description="How long a deleted workspace keeps its last archive, so that undelete works."
    )


class Retention(Concern):
    """How long rows are kept after what they tell of has ended; the newest are never removed early."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_RETENTION_")

    workspaces_days: Count = Field(
        90, description="Days for which a deleted workspace is remembered; never less than undelete works."
    )
    archives_days: Count = Field(90, description="Days for which a removed archive is remembered.")
    events_days: Count = Field(90, description="Days of history that workspaces keep.")
    sessions_days: Count = Field(90, description="Days for which a session is remembered after its end.")
    tokens_days: Count = Field(
        90, description="Days for which an API token is remembered after it expired or was revoked."
    )
    usage_days: Count = Field(7, description="Days for which it is remembered when a workspace was used.")


class Worker(Concern):
    """The process that runs workflows and activities."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKER_")

    concurrent_archives: Count | None = Field(
        None, description="Homes that one worker archives at once; unset means one per processor."
    )
    concurrent_restores: Count | None = Field(
        None, description="Homes that one worker restores at once; unset means one per processor."
    )
    concurrent_starts: Count | None = Field(
        None, description="IDEs that one worker starts at once; unset means two per processor, at least 4."
    )
    concurrent_activities: Count = Field(
        100,
        description="Other steps that one worker does at once: sweeps, and apart from those stops, pulls and "
        "changes to volumes.",
    )
    stall_seconds: StepSeconds = Field(
        600,
        description="How long a step may make no progress before it is ended and tried again; one that makes "
        "progress is not ended.",
    )
    shutdown_grace_seconds: Seconds = Field(
        10, description="How long steps may go on after the worker was asked to stop."
    )
    metrics_port: Port | None = Field(
        None, description="Loopback port for Prometheus; unset means that there is none."
    )
    ready_file: Directory | None = Field(
        None, description="File that the worker makes once it takes work, for whoever waits for it."
    )


class Sweeps(Concern):
    """How often everything is looked at, whether or not somebody asked."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_SWEEPS_")

    observe_seconds: Seconds = Field(15, description="Time between two looks for what drifted.")
    ttl_seconds: Seconds = Field(60, description="Time between two looks for unused workspaces.")
    gc_seconds: Seconds = Field(14400, description="Time between two collections of archives.")
    retention_seconds: Seconds = Field(86400, description="Time between two removals of old rows.")


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
    docker: Docker = Field(default_factory=Docker)
    ttl: Ttl = Field(default_factory=Ttl)
    limits: Limits = Field(default_factory=Limits)
    gc: Gc = Field(default_factory=Gc)
    retention: Retention = Field(default_factory=Retention)
    worker: Worker = Field(default_factory=Worker)
    sweeps: Sweeps = Field(default_factory=Sweeps)

    @property
    def public_base_url(self) -> str:
        """Where browsers reach CodeHub, without a slash at the end."""
        host = f"[{self.proxy.host}]" if ":" in self.proxy.host else self.proxy.host
        return self.general.public_base_url or f"http://{host}:{self.proxy.port}"
