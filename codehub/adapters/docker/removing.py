"""Removing a container for good, whoever else is at it."""

import asyncio
from http import HTTPStatus

from aiodocker import DockerError
from aiodocker.containers import DockerContainer

GONE_SECONDS = 30
POLL_SECONDS = 0.05


async def remove_container(container: DockerContainer) -> None:
    """Return once it is gone; succeed if there is none. It is killed if it runs."""
    try:
        await container.delete(force=True)
    except DockerError as error:
        # Removed already, or by somebody else right now.
        if error.status == HTTPStatus.CONFLICT:
            await _until_gone(container)
        elif error.status != HTTPStatus.NOT_FOUND:
            raise


async def _until_gone(container: DockerContainer) -> None:
    async with asyncio.timeout(GONE_SECONDS):
        while True:
            try:
                await container.show()
            except DockerError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return
                raise
            await asyncio.sleep(POLL_SECONDS)
