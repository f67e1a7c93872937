"""Concurrent calls share one result; a call that hangs blocks nobody for long."""

import asyncio

import pytest

from proxy.single_flight import SingleFlight


async def never() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def succeed() -> str:
    return "result"


async def fail() -> str:
    raise ValueError


async def test_a_call_that_hangs_times_out_for_all_and_can_be_repeated() -> None:
    calls: SingleFlight[str, str] = SingleFlight(max_seconds=0.05)
    waiting = [asyncio.create_task(calls.run("key", never)) for _ in range(3)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in results} == {TimeoutError}
    assert await calls.run("key", succeed) == "result"


async def test_a_failure_reaches_all_callers_and_is_not_cached() -> None:
    calls: SingleFlight[str, str] = SingleFlight()
    results = await asyncio.gather(*(calls.run("key", fail) for _ in range(3)), return_exceptions=True)
    assert {type(each) for each in results} == {ValueError}
    assert await calls.run("key", succeed) == "result"


async def test_a_forgotten_call_serves_no_later_callers() -> None:
    calls: SingleFlight[str, str] = SingleFlight(max_seconds=0.05)
    outdated = asyncio.create_task(calls.run("key", never))
    await asyncio.sleep(0)
    calls.forget("key")
    assert await calls.run("key", succeed) == "result"
    with pytest.raises(TimeoutError):
        await outdated
