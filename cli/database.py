"""The servers that a command works on: those that the settings name, or those of a running `codehub up`."""

import os

from codehub.embedded.backends import recorded_backend
from codehub.embedded.child_process import ChildState
from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers.postgres import POSTGRES
from codehub.embedded.servers.registry import environment, load_config
from codehub.embedded.state import RunningStack, read_running_stack
from codehub.settings import Settings, load_settings

BACKEND = "CODEHUB_WORKSPACES_INSTANCE_BACKEND"


class NoDatabase(Exception):
    """None is to be found; the message says what to do."""


def database_url(settings: Settings) -> str:
    """Where the database is. It holds a password."""
    if settings.database.url is not None:
        return settings.database.url.get_secret_value()
    data = DataDir(settings.general.data_dir.absolute())
    running = read_running_stack(data)
    if running is None:
        raise NoDatabase(
            f"CodeHub does not run on {data.root}. Start it with `codehub up`, or name its directory with "
            "CODEHUB_DATA_DIR or its database with CODEHUB_DATABASE_URL."
        )
    if _is_external(running):
        raise NoDatabase("CodeHub runs with CODEHUB_DATABASE_URL; set it for this command too.")
    # Only this server is asked: the others may be external ones, which this shell knows nothing about.
    return POSTGRES.environment(load_config(data, settings))["CODEHUB_DATABASE_URL"]


def settings_of_stack(settings: Settings) -> Settings:
    """The settings with the addresses and the backend of a running `codehub up`, if they name no S3."""
    data = DataDir(settings.general.data_dir.absolute())
    if settings.s3.endpoint_url is not None or read_running_stack(data) is None:
        return settings
    backend = recorded_backend(data)
    recorded = {BACKEND: backend} if backend else {}
    return load_settings({**recorded, **os.environ, **environment(load_config(data, settings))})


def _is_external(running: RunningStack) -> bool:
    return any(part.name == POSTGRES.name and part.state is ChildState.EXTERNAL for part in running.parts)
