"""Which servers are embedded, how to reach them, and that no secret is on a command line."""

from dataclasses import asdict
from pathlib import Path

import pytest

from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers.base import StackConfig
from codehub.embedded.servers.registry import (
    embedded_children,
    environment,
    external_addresses,
    load_config,
    prepare_config,
)
from codehub.settings import Settings, load_settings

EXTERNAL = {
    "CODEHUB_DATABASE_URL": "postgresql://ann:hunter2@database.example/codehub",
    "CODEHUB_REDIS_URL": "redis://:hunter2@redis.example:6379/0",
    "CODEHUB_S3_ENDPOINT_URL": "https://s3.example",
    "CODEHUB_S3_ACCESS_KEY": "key",
    "CODEHUB_S3_SECRET_KEY": "hunter2",
    "CODEHUB_TEMPORAL_ADDRESS": "temporal.example:7233",
}


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    directory = DataDir(tmp_path)
    directory.create()
    return directory


@pytest.fixture
def config(data: DataDir) -> StackConfig:
    return prepare_config(data, Settings())


def test_all_servers_are_embedded_by_default(config: StackConfig) -> None:
    assert [child.name for child in embedded_children(config)] == ["postgres", "redis", "s3", "temporal"]


def test_environment_is_complete_for_the_settings(config: StackConfig) -> None:
    settings = load_settings(environment(config))
    assert settings.general.data_dir.is_absolute()
    assert external_addresses(settings) == {child.name: child.address for child in embedded_children(config)}
    assert settings.temporal.uses_tls
    # The Web UI is not open to every local user: `codehub temporal-ui` opens it for one.
    assert settings.temporal.ui_url is None


def test_server_with_a_url_is_not_started(data: DataDir) -> None:
    settings = load_settings(EXTERNAL)
    config = prepare_config(data, settings)
    assert embedded_children(config) == []
    assert environment(config).items() >= EXTERNAL.items()
    assert external_addresses(settings) == {
        "postgres": "database.example",
        "redis": "redis.example:6379",
        "s3": "s3.example",
        "temporal": "temporal.example:7233",
    }


def test_one_external_server_leaves_the_others_embedded(data: DataDir) -> None:
    config = prepare_config(data, load_settings({"CODEHUB_REDIS_URL": EXTERNAL["CODEHUB_REDIS_URL"]}))
    assert [child.name for child in embedded_children(config)] == ["postgres", "s3", "temporal"]
    assert environment(config)["CODEHUB_REDIS_URL"] == EXTERNAL["CODEHUB_REDIS_URL"]


def test_no_secret_is_on_a_command_line_or_shown(config: StackConfig) -> None:
    for child in embedded_children(config):
        for secret in asdict(config.credentials).values():
            assert secret not in " ".join(child.command)
            assert secret not in repr(child)
    assert config.credentials.redis_password not in repr(config)


def test_other_commands_use_the_same_servers(config: StackConfig, data: DataDir) -> None:
    assert environment(load_config(data, Settings())) == environment(config)


def test_ports_of_an_embedded_server_are_kept_while_it_is_external(
    data: DataDir, config: StackConfig
) -> None:
    prepare_config(data, load_settings(EXTERNAL))
    assert prepare_config(data, Settings()).ports == config.ports
