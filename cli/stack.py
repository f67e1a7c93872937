"""The database, S3 and backend that local commands use: configured ones, or those of `codehub up`."""

from pydantic import SecretStr

from codehub.embedded.backends import configured_backend, recorded_backend
from codehub.embedded.child_process import ChildState
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import read_running_stack
from codehub.settings import SecretUrl, Settings, load_settings
from codehub.settings.processes import Egress


class NoDatabase(Exception):
    """There is no database to use; the message says what to do."""


def data_dir_of(settings: Settings) -> DataDir:
    return DataDir(settings.general.data_dir.absolute())


def effective_settings(settings: Settings) -> Settings:
    """Return the settings that CodeHub uses on this data directory; configured values take precedence.

    Raise NoDatabase if there is no database.
    """
    data = data_dir_of(settings)
    workspaces, s3 = settings.workspaces, settings.s3
    if backend := configured_backend(settings) or recorded_backend(data):
        # Validated again, because other defaults depend on the backend.
        configured = workspaces.model_dump(exclude_unset=True)
        workspaces = type(workspaces).model_validate({**configured, "instance_backend": backend})
    if s3.endpoint_url is None and read_running_stack(data) is not None:
        embedded = load_settings(_s3_environment(settings)).s3
        s3 = s3.model_copy(update=embedded.model_dump(exclude_unset=True))
    database = settings.database.model_copy(update={"url": SecretUrl(database_url(settings))})
    return settings.model_copy(
        update={
            "database": database,
            "s3": s3,
            "workspaces": workspaces,
            "egress": _effective_egress(settings.egress, data),
        }
    )


def _effective_egress(egress: Egress, data: DataDir) -> Egress:
    if egress.key is not None or not data.egress_key.exists():
        return egress
    return egress.model_copy(update={"key": SecretStr(data.egress_key.read_text().strip())})


def database_url(settings: Settings) -> str:
    """Return the URL of the database, which contains a password."""
    if settings.database.url is not None:
        return settings.database.url.get_secret_value()
    return _embedded_database_url(settings)


# The modules of the servers load slowly, and many commands do not need them.


def _embedded_database_url(settings: Settings) -> str:
    from codehub.embedded.servers.postgres import POSTGRES  # noqa: PLC0415
    from codehub.embedded.servers.registry import load_config  # noqa: PLC0415

    data = data_dir_of(settings)
    running = read_running_stack(data)
    if running is None:
        raise NoDatabase(
            f"CodeHub is not running on {data.root}. Start it with `codehub up`, or set CODEHUB_DATA_DIR or "
            "CODEHUB_DATABASE_URL."
        )
    if any(part.name == POSTGRES.name and part.state is ChildState.EXTERNAL for part in running.parts):
        raise NoDatabase("CodeHub is running with CODEHUB_DATABASE_URL. Set it for this command too.")
    # Use only this server: the others may be external, and this shell does not know their addresses.
    return POSTGRES.environment(load_config(data, settings))["CODEHUB_DATABASE_URL"]


def _s3_environment(settings: Settings) -> dict[str, str]:
    from codehub.embedded.servers.registry import load_config  # noqa: PLC0415
    from codehub.embedded.servers.seaweed import S3  # noqa: PLC0415

    return dict(S3.environment(load_config(data_dir_of(settings), settings)))
