"""Which servers are ours and which are external, and the environment that leads to each."""

import json
from urllib.parse import urlsplit

from codehub.embedded.child_process import Child
from codehub.embedded.data_dir import DataDir, load_or_create, read_json, write_private
from codehub.embedded.free_ports import choose_ports
from codehub.embedded.servers.base import Place, Server
from codehub.embedded.servers.postgres import POSTGRES
from codehub.embedded.servers.redis import REDIS
from codehub.embedded.servers.seaweed import S3
from codehub.embedded.servers.temporal import TEMPORAL
from codehub.settings import Settings

SERVERS = (POSTGRES, REDIS, S3, TEMPORAL)
TITLES = {server.name: server.title for server in SERVERS}


def prepare(data: DataDir, settings: Settings) -> Place:
    """Choose and remember ports and credentials. Only for whoever holds the data directory's lock."""
    remembered = _remembered_ports(data)
    ports = choose_ports([port for server in _ours(settings) for port in server.ports], remembered)
    write_private(data.ports, json.dumps({"ports": {**remembered, **ports}}, indent=2))
    return Place(data, settings, ports, load_or_create(data.credentials))


def last_known(data: DataDir, settings: Settings) -> Place:
    """As it was last started: for commands that talk to a stack which another process runs."""
    return Place(data, settings, _remembered_ports(data), load_or_create(data.credentials))


def children(place: Place) -> list[Child]:
    """The servers to be started here."""
    return [server.child(place) for server in _ours(place.settings)]


def environment(place: Place) -> dict[str, str]:
    """What a CodeHub process needs to reach every server, external ones included. It holds secrets."""
    found = _configured(place.settings)
    for server in _ours(place.settings):
        found |= server.environment(place)
    return {**found, "CODEHUB_DATA_DIR": str(place.data.root)}


def external_addresses(settings: Settings) -> dict[str, str]:
    """The servers that somebody else runs, with an address that shows no secret."""
    configured = _configured(settings)
    urls = {
        POSTGRES.name: configured.get("CODEHUB_DATABASE_URL"),
        REDIS.name: configured.get("CODEHUB_REDIS_URL"),
        S3.name: configured.get("CODEHUB_S3_ENDPOINT_URL"),
        TEMPORAL.name: settings.temporal.address and f"temporal://{settings.temporal.address}",
    }
    return {name: urlsplit(url).netloc.rpartition("@")[2] for name, url in urls.items() if url}


def _ours(settings: Settings) -> list[Server]:
    external = external_addresses(settings)
    return [server for server in SERVERS if server.name not in external]


def _configured(settings: Settings) -> dict[str, str]:
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


def _remembered_ports(data: DataDir) -> dict[str, int]:
    ports = read_json(data.ports).get("ports", {})
    return {name: port for name, port in ports.items() if isinstance(port, int)}
