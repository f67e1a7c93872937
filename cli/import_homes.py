"""`codehub migrate --import-homes`: import M1's homes, with progress and a result for each."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from cli.formatting import format_size
from codehub.adapters.local.directory_jobs import DirectoryJobs
from codehub.adapters.s3.archives import S3Archives
from codehub.bootstrap import archive_store_of, open_database, prepare_stores
from codehub.db.m1_homes import Backend, M1Home
from codehub.ports import Progress
from codehub.providers import open_providers
from codehub.settings import Settings
from migrations.homes import CannotImport, HomeImport, HomeMissing

STEPS = {"upload": "uploading", "verify": "verifying"}
CLEAR_LINE = "\r\x1b[K"


@dataclass
class Summary:
    """The results of the import."""

    imported: int = 0
    without_home: list[M1Home] = field(default_factory=list)
    left: int = 0


async def import_homes(settings: Settings, directory: Path, *, accept_missing: bool) -> bool:
    """Import every home that M1 still owns; return whether all are imported."""
    await prepare_stores(settings)
    async with _open_import(settings, directory) as homes_import:
        homes = await homes_import.find_homes()
        backend = homes_import.backend.instance_backend
        typer.echo(f"Importing {_homes(len(homes))} of M1 from {directory} for the backend {backend}.")
        summary = Summary()
        for number, home in enumerate(homes, start=1):
            label = f"[{number}/{len(homes)}] {home.name} ({home.workspace_id})"
            await _import_one(homes_import, home, label, summary, accept_missing=accept_missing)
        # If a home is missing, DIR may be wrong, so it is not certain that these have none.
        if summary.left == 0:
            for home in summary.without_home:
                await homes_import.accept_without_home(home)
    typer.echo(_describe(summary))
    return summary.left == 0


@asynccontextmanager
async def _open_import(settings: Settings, directory: Path) -> AsyncIterator[HomeImport]:
    store, workspaces = archive_store_of(settings), settings.workspaces
    async with (
        open_database(settings) as database,
        open_providers(settings) as providers,
        S3Archives.open(store) as archives,
    ):
        yield HomeImport(
            directory=directory,
            backend=Backend(
                workspaces.instance_backend, workspaces.storage_backend, workspaces.default_image_ref
            ),
            database=database,
            instances=providers.instances,
            volumes=providers.volumes,
            archives=archives,
            jobs=DirectoryJobs(store),
        )


async def _import_one(
    homes_import: HomeImport, home: M1Home, label: str, summary: Summary, *, accept_missing: bool
) -> None:
    line = StatusLine(label)
    try:
        archive = await homes_import.import_home(home, line.show)
    except HomeMissing as error:
        if home.must_exist and not accept_missing:
            summary.left += 1
            line.end(f"not imported: {error}")
        else:
            summary.without_home.append(home)
            line.end("its home is missing and was given up" if home.must_exist else "it has no home yet")
    except CannotImport as error:
        summary.left += 1
        line.end(f"not imported: {error}")
    else:
        summary.imported += 1
        line.end(f"imported and verified, {format_size(archive.size_bytes)}")


class StatusLine:
    """The status of one home; updated in place on a terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._is_live = sys.stdout.isatty()

    def show(self, progress: Progress) -> None:
        if self._is_live:
            step = STEPS.get(progress.step, progress.step)
            sys.stdout.write(f"{CLEAR_LINE}{self._label}: {step}, {format_size(progress.done)}")
            sys.stdout.flush()

    def end(self, sentence: str) -> None:
        stop = "" if sentence.endswith((".", "?")) else "."
        typer.echo(f"{CLEAR_LINE if self._is_live else ''}{self._label}: {sentence}{stop}")


def _describe(summary: Summary) -> str:
    imported, unchanged = _homes(summary.imported), "M1's directories are unchanged."
    if summary.left:
        return (
            f"Imported {imported}; {_homes(summary.left)} left. Workers do not start until all are imported: "
            "fix the cause, then run this again. Use --accept-missing to give up missing homes. "
            f"{unchanged}"
        )
    return f"Imported {imported}; none is left. Start CodeHub to restore them into volumes. {unchanged}"


def _homes(count: int) -> str:
    return "1 home" if count == 1 else f"{count} homes"
