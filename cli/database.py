"""The database that a command works on: the one that the settings name, or that of a running `codehub up`."""

from codehub.embedded.children import ChildState
from codehub.embedded.data_dir import DataDir
from codehub.embedded.postgres import POSTGRES
from codehub.embedded.servers import last_known
from codehub.embedded.state import RunningStack, read_running
from codehub.settings import Settings


class NoDatabase(Exception):
    """None is to be found; the message says what to do."""


def database_url(settings: Settings) -> str:
    """Where the database is. It holds a password."""
    if settings.database.url is not None:
        return settings.database.url.get_secret_value()
    data = DataDir(settings.general.data_dir.absolute())
    running = read_running(data)
    if running is None:
        raise NoDatabase(
            f"CodeHub does not run on {data.root}. Start it with `codehub up`, or name its directory with "
            "CODEHUB_DATA_DIR or its database with CODEHUB_DATABASE_URL."
        )
    if _is_external(running):
        raise NoDatabase("CodeHub runs with CODEHUB_DATABASE_URL; set it for this command too.")
    # Only this server is asked: the others may be external ones, which this shell knows nothing about.
    return POSTGRES.environment(last_known(data, settings))["CODEHUB_DATABASE_URL"]


def _is_external(running: RunningStack) -> bool:
    return any(part.name == POSTGRES.name and part.state is ChildState.EXTERNAL for part in running.parts)
