"""The workers of one process start and stop together."""

import asyncio
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from testkit.temporal_server import TemporalServer
from testkit.waiting import DEADLINE_SECONDS
from worker.workers import Workers


@activity.defn
async def nothing() -> None: ...


def create(client: Client) -> Worker:
    return Worker(client, task_queue=f"test-{uuid4()}", activities=[nothing])


async def test_a_fatal_error_of_one_ends_all(
    temporal_client: Client, temporal_server: TemporalServer
) -> None:
    nowhere = await Client.connect(temporal_server.address, namespace="there-is-none")
    sound, broken = create(temporal_client), create(nowhere)
    async with asyncio.timeout(DEADLINE_SECONDS):
        with pytest.raises(ExceptionGroup) as caught:
            await Workers([sound, broken]).run()
    assert "there-is-none" in str(caught.value.exceptions[0])
    assert sound.is_shutdown


async def test_all_workers_stop_on_request(temporal_client: Client) -> None:
    members = [create(temporal_client) for _ in range(3)]
    workers = Workers(members)
    async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(workers.run())
        await workers.shutdown()
    assert all(each.is_shutdown for each in members)
