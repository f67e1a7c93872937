"""Ending and removing a container for good, whoever else is at it."""

import asyncio
from http import HTTPStatus

from aiodocker import DockerError
from aiodocker.containers import DockerContainer

from codehub.adapters.docker.engine import ANSWER_SECONDS, tolerating

POLL_SECONDS = 0.05


async def stop_container(container: DockerContainer, grace_seconds: int, answer_seconds: float) -> None:
    """Ask it to end, kill it after the grace; succeed if it does not run, is going or is not there."""
    # The client would wait forever for an engine that hangs.
    async with asyncio.timeout(grace_seconds + answer_seconds):
        with tolerating(HTTPStatus.NOT_MODIFIED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await container.stop(t=grace_seconds)


async def remove_container(container: DockerContainer) -> None:
    """Return once it is gone; succeed if there is none. It is killed if it runs."""
    async with asyncio.timeout(ANSWER_SECONDS):
        try:
            await container.delete(force=True)
        except DockerError as error:
            # Removed already, or by somebody else right now.
            if error.status == HTTPStatus.CONFLICT:
                await _until_gone(container)
            elif error.status != HTTPStatus.NOT_FOUND:
                raise


async def _until_gone(container: DockerContainer) -> None:
    while True:
        try:
            await container.show()
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return
            raise
        await asyncio.sleep(POLL_SECONDS)
