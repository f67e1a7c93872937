"""All servers: which ones are embedded, and the environment that connects CodeHub to each."""

import json
from urllib.parse import urlsplit

from codehub.embedded.certificates import ensure_certificates
from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import (
    DataDir,
    load_or_create_credentials,
    load_or_create_secret,
    read_json,
    write_private,
)
from codehub.embedded.free_ports import choose_ports
from codehub.embedded.servers.base import Server, StackConfig
from codehub.embedded.servers.postgres import POSTGRES
from codehub.embedded.servers.redis import REDIS
from codehub.embedded.servers.seaweed import S3
from codehub.embedded.servers.temporal import TEMPORAL
from codehub.settings import Settings

SERVERS = (POSTGRES, REDIS, S3, TEMPORAL)
TITLES = {server.name: server.title for server in SERVERS}


def prepare_config(data: DataDir, settings: Settings) -> StackConfig:
    """Choose and record ports, credentials and certificates.

    The caller must hold the lock of the data directory.
    """
    recorded = _recorded_ports(data)
    servers = _embedded_servers(settings)
    ports = choose_ports([port for server in servers for port in server.ports], recorded)
    write_private(data.ports, json.dumps({"ports": {**recorded, **ports}}, indent=2))
    for server in servers:
        if server.certificates is not None:
            ensure_certificates(server.certificates(data), server.name)
    return StackConfig(data, settings, ports, load_or_create_credentials(data.credentials))


def load_config(data: DataDir, settings: Settings) -> StackConfig:
    """Return the recorded configuration, for commands that talk to a running stack."""
    return StackConfig(data, settings, _recorded_ports(data), load_or_create_credentials(data.credentials))


def embedded_children(config: StackConfig) -> list[Child]:
    """Return the embedded servers."""
    return [server.child(config) for server in _embedded_servers(config.settings)]


def environment(config: StackConfig) -> dict[str, str]:
    """Return the settings that connect a CodeHub process to all servers. They include secrets."""
    found = _configured_environment(config.settings)
    for server in _embedded_servers(config.settings):
        found |= server.environment(config)
    return {**found, **_egress_environment(config), "CODEHUB_DATA_DIR": str(config.data.root)}


def external_addresses(settings: Settings) -> dict[str, str]:
    """Return the addresses of the external servers, without passwords."""
    configured = _configured_environment(settings)
    urls = {
        POSTGRES.name: configured.get("CODEHUB_DATABASE_URL"),
        REDIS.name: configured.get("CODEHUB_REDIS_URL"),
        S3.name: configured.get("CODEHUB_S3_ENDPOINT_URL"),
        TEMPORAL.name: settings.temporal.address and f"temporal://{settings.temporal.address}",
    }
    return {name: urlsplit(url).netloc.rpartition("@")[2] for name, url in urls.items() if url}


def _egress_environment(config: StackConfig) -> dict[str, str]:
    """Return the secret that the worker and the egress gateway share."""
    configured = config.settings.egress.key
    key = configured.get_secret_value() if configured else load_or_create_secret(config.data.egress_key)
    return {"CODEHUB_EGRESS_KEY": key}


def _embedded_servers(settings: Settings) -> list[Server]:
    external = external_addresses(settings)
    return [server for server in SERVERS if server.name not in external]


def _configured_environment(settings: Settings) -> dict[str, str]:
    s3, database, redis = settings.s3, settings.database.url, settings.redis.url
    values = {
        "CODEHUB_DATABASE_URL": database and database.get_secret_value(),
        "CODEHUB_REDIS_URL": redis and redis.get_secret_value(),
        "CODEHUB_S3_ENDPOINT_URL": s3.endpoint_url,
        "CODEHUB_S3_ACCESS_KEY": s3.access_key,
        "CODEHUB_S3_SECRET_KEY": s3.secret_key and s3.secret_key.get_secret_value(),
        "CODEHUB_S3_BUCKET": s3.bucket,
        "CODEHUB_S3_REGION": s3.region,
        "CODEHUB_TEMPORAL_ADDRESS": settings.temporal.address,
        "CODEHUB_TEMPORAL_NAMESPACE": settings.temporal.namespace,
        "CODEHUB_TEMPORAL_UI_URL": settings.temporal.ui_url,
    }
    return {name: value for name, value in values.items() if value}


def _recorded_ports(data: DataDir) -> dict[str, int]:
    ports = read_json(data.ports).get("ports", {})
    return {name: port for name, port in ports.items() if isinstance(port, int)}
