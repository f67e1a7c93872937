"""Choose what runs workspaces before `codehub up` starts anything, and record the choice."""

import asyncio
import os

from cli.machine_checks import local_findings
from cli.up.view import View
from codehub.bootstrap import ensure_homes
from codehub.db.session import Database
from codehub.embedded.backends import (
    LOCAL,
    BackendChoice,
    BackendUnavailable,
    DockerStatus,
    configured_backend,
    decide_backend,
    docker_images,
    needs_docker_probe,
    record_backend,
    recorded_backend,
)
from codehub.embedded.docker_probe import probe_and_pull
from codehub.embedded.stack import EmbeddedStack
from codehub.providers import unsafe_workspaces
from codehub.services.home_store import require_backend, require_homes_imported
from codehub.services.users import require_single_account
from codehub.settings import Settings, load_settings


async def choose_backend(stack: EmbeddedStack, settings: Settings, view: View) -> None:
    """Choose the backend and print why; raise BackendUnavailable if the required one is unavailable."""
    choice = await _choose(stack, settings, view)
    view.print(choice.sentence)
    if choice.backend == LOCAL:
        await asyncio.to_thread(_check_local, settings, view)
    stack.instance_backend = choice.backend


async def record_choice(stack: EmbeddedStack, database: Database) -> None:
    """Record the backend for the next start; raise if the database belongs to another one."""
    if (backend := stack.instance_backend) is None:
        return
    async with database.transaction() as session:
        await require_homes_imported(session)
        await require_backend(session, backend)
    settings = load_settings({**os.environ, **stack.environment})
    if unsafe_workspaces(settings):
        await require_single_account(database)
    await ensure_homes(settings, database)
    record_backend(stack.data, backend)


def _check_local(settings: Settings, view: View) -> None:
    """Raise BackendUnavailable if something that workspaces need is missing."""
    missing = [each for each in local_findings(settings, required=True) if not each.found]
    for finding in missing:
        if not finding.required:
            view.print(f"{finding.name} is missing ({finding.detail}): {finding.remedy}.")
    if required := [f"{each.name} ({each.remedy})" for each in missing if each.required]:
        raise BackendUnavailable(f"This machine does not have what workspaces need: {', '.join(required)}.")


async def _choose(stack: EmbeddedStack, settings: Settings, view: View) -> BackendChoice:
    chosen, recorded = configured_backend(settings), recorded_backend(stack.data)
    images = docker_images(settings)
    docker = DockerStatus()
    if needs_docker_probe(chosen, recorded):
        docker = await probe_and_pull(
            settings.docker.url, images, view.print, publish_ports=settings.docker.publish_ports
        )
    return decide_backend(chosen, recorded, docker, images[0])
