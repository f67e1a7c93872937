"""Assert that a job gives the right result, or the right error without leaving anything behind."""

import hashlib
from collections.abc import Awaitable
from pathlib import Path

import psutil
import pytest

from storage_job.errors import JobError, Reason
from storage_job.meta import parse_meta
from storage_job.progress import Outcome
from storage_job.volume import WORK_NAME
from testkit.trees import Description, describe_tree
from tests.buckets import Bucket
from tests.storage_jobs import KEY, archive, restore

PROGRAMS = {"tar"}


def content_of(volume: Path) -> Description:
    """Describe everything but the time of the root, which changes with the staging directory."""
    description = describe_tree(volume)
    description[b"."].pop("mtime_ns")
    return description


async def failure_of(job: Awaitable[Outcome]) -> JobError | None:
    try:
        await job
    except JobError as error:
        return error
    return None


async def assert_refused(bucket: Bucket, volume: Path, reason: Reason, **overrides: object) -> JobError:
    before = content_of(volume)
    with pytest.raises(JobError) as caught:
        await restore(bucket, volume, **overrides)
    assert caught.value.reason is reason, caught.value.message
    assert content_of(volume) == before
    assert not (volume / WORK_NAME).exists()
    assert_no_processes()
    return caught.value


async def assert_not_archived(bucket: Bucket, home: Path, match: str) -> None:
    with pytest.raises(JobError, match=match) as caught:
        await archive(bucket, home)
    assert caught.value.reason is Reason.ACTION_FAILED, caught.value.message
    await assert_nothing_uploaded(bucket)


async def assert_nothing_uploaded(bucket: Bucket) -> None:
    assert await bucket.keys() == []
    assert await bucket.unfinished_uploads() == []
    assert_no_processes()


async def assert_round_trip(bucket: Bucket, home: Path, volume: Path) -> None:
    before = describe_tree(home)
    await archive(bucket, home)
    await restore(bucket, volume)
    assert describe_tree(volume) == before
    assert_no_processes()


async def assert_meta_matches(bucket: Bucket, key: str = KEY) -> None:
    content = await bucket.read(key)
    meta = parse_meta(await bucket.read(key + ".meta"))
    assert (meta.sha256, meta.size) == (hashlib.sha256(content).hexdigest(), len(content))


def assert_no_processes() -> None:
    left = [each for each in psutil.Process().children(recursive=True) if each.name() in PROGRAMS]
    assert left == []
