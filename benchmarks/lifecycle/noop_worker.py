"""`python -m benchmarks.lifecycle.noop_worker`: a worker whose providers do nothing."""

import asyncio
import signal

from codehub.adapters.redis.activity import RedisActivityBuffer
from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.bootstrap import Ports, connect_temporal, open_database, redis_url_of
from codehub.policy import policy_of
from codehub.settings import Settings, load_settings
from testkit.fakes import FakeArchives, FakeInstances, FakeStorageJobs, FakeVolumes, FakeWorld
from worker.__main__ import prepare
from worker.workers import create_workers


async def run(settings: Settings) -> None:
    client = await connect_temporal(settings)
    # Including the schedules, because sweeps are part of the load of a busy system.
    await prepare(client, settings)
    redis, task_queue, world = (
        create_client(redis_url_of(settings)),
        settings.temporal.task_queue,
        FakeWorld(),
    )
    async with open_database(settings) as database:
        ports = Ports(
            database=database,
            instances=FakeInstances(world),
            volumes=FakeVolumes(world),
            jobs=FakeStorageJobs(world),
            archives=FakeArchives(world),
            buffer=RedisActivityBuffer(redis),
            board=RedisProgressBoard(redis),
            convergence=TemporalConvergence(client, task_queue),
        )
        async with create_workers(client, task_queue, ports, policy_of(settings)):
            if settings.worker.ready_file:
                settings.worker.ready_file.touch()
            await _wait_for_sigterm()
    await redis.aclose()


async def _wait_for_sigterm() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await stopping.wait()


if __name__ == "__main__":
    asyncio.run(run(load_settings()))
