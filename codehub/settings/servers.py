"""The servers that CodeHub uses."""

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from codehub.settings.concern import Concern
from codehub.settings.types import (
    CONFLICT,
    Address,
    BucketName,
    Count,
    FilePath,
    Host,
    HttpUrl,
    PostgresUrl,
    RedisUrl,
    Seconds,
    SecretText,
    Switch,
)


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
