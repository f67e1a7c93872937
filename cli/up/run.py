"""Run `codehub up`: start servers, migrate, create the first account, start processes, stop all."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Sequence
from logging.handlers import RotatingFileHandler

from cli.up.backend import choose_backend, record_choice
from cli.up.view import View
from codehub.db.session import Database, DatabaseUnavailable, create_engine
from codehub.embedded.backends import BackendUnavailable
from codehub.embedded.child_process import CannotPrepare, StartFailed
from codehub.embedded.data_dir import DamagedCredentials
from codehub.embedded.free_ports import NoFreePort
from codehub.embedded.processes import CodeHubProcess
from codehub.embedded.stack import EmbeddedStack
from codehub.embedded.state import AlreadyRunning
from codehub.origins import origins_warning
from codehub.services.errors import SingleAccountOnly
from codehub.services.home_store import HomesNotImported, WrongBackend
from codehub.services.users import ensure_admin
from codehub.settings import Settings, SettingsError
from migrations import runner
from migrations.errors import MigrationError

FAILED = 1
# Their messages are for people.
FAILURES = (
    AlreadyRunning,
    BackendUnavailable,
    CannotPrepare,
    DamagedCredentials,
    DatabaseUnavailable,
    HomesNotImported,
    MigrationError,
    NoFreePort,
    SingleAccountOnly,
    WrongBackend,
    SettingsError,
    StartFailed,
)
LOG_BYTES = 1_000_000
KEPT_LOGS = 3


async def run(settings: Settings, processes: Sequence[CodeHubProcess]) -> int:
    """Run until a signal stops it; return the exit code."""
    view = View()
    stack = EmbeddedStack(settings.general.data_dir, settings, view.show)
    try:
        await _run_until_stopped(stack, settings, processes, view)
    except FAILURES as error:
        # Stop first, so that the error is the last output.
        await stack.stop()
        view.explain(error)
        return FAILED
    finally:
        await stack.stop()
    view.print("Stopped. Your data is kept. Start again with: codehub up")
    return 0


async def _run_until_stopped(
    stack: EmbeddedStack, settings: Settings, processes: Sequence[CodeHubProcess], view: View
) -> None:
    stack.prepare()
    _log_to_file(stack)
    stopping = _stop_on_signal(stack, view)
    # Without CodeHub's processes, nothing runs workspaces.
    if processes and not await _run_unless(stopping, choose_backend(stack, settings, view)):
        return
    with view.starting():
        started = await _run_unless(stopping, _start(stack, processes, view))
    if started:
        view.ready(stack.urls, stack.data, origins_warning(settings.origins))
        await stopping.wait()


async def _start(stack: EmbeddedStack, processes: Sequence[CodeHubProcess], view: View) -> None:
    # The schema needs only PostgreSQL, so the other servers can start meanwhile.
    together = asyncio.gather(stack.start_servers(), _prepare_database(stack, view))
    try:
        await together
    finally:
        together.cancel()
    await stack.start_processes(processes, os.environ)


async def _prepare_database(stack: EmbeddedStack, view: View) -> None:
    await stack.wait_ready("postgres")
    url = stack.environment["CODEHUB_DATABASE_URL"]
    change = await runner.upgrade(url)
    if change.before != change.after:
        view.print(f"Database schema: {change.before or 'empty'} → {change.after}")
    async with Database(create_engine(url, pool_size=1)) as database:
        await record_choice(stack, database)
        async with database.transaction() as session:
            password = await ensure_admin(session)
        if password is not None:
            view.show_password(password)


async def _run_unless(stopping: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
    """Do the work, or cancel it on a signal; return whether it was done."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return False


def _stop_on_signal(stack: EmbeddedStack, view: View) -> asyncio.Event:
    """Return an event that the first Ctrl-C sets; the second one kills everything."""
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            stack.stop_now()
        else:
            view.print("Stopping ... (press Ctrl-C again to stop immediately)")
            stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return stopping


def _log_to_file(stack: EmbeddedStack) -> None:
    handler = RotatingFileHandler(stack.data.log("up"), maxBytes=LOG_BYTES, backupCount=KEPT_LOGS)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("codehub")
    logger.addHandler(handler)
    logger.propagate = False
