"""One question for many, which no answer that never comes can block."""

import asyncio

import pytest

from proxy.single_flight import SingleFlight


async def never() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def answer() -> str:
    return "answer"


async def fail() -> str:
    raise ValueError


async def test_an_answer_that_never_comes_is_given_up_for_all_and_asked_for_anew() -> None:
    calls: SingleFlight[str, str] = SingleFlight(max_seconds=0.05)
    waiting = [asyncio.create_task(calls.run("key", never)) for _ in range(3)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in results} == {TimeoutError}
    assert await calls.run("key", answer) == "answer"


async def test_a_failure_is_told_to_all_and_not_remembered() -> None:
    calls: SingleFlight[str, str] = SingleFlight()
    results = await asyncio.gather(*(calls.run("key", fail) for _ in range(3)), return_exceptions=True)
    assert {type(each) for each in results} == {ValueError}
    assert await calls.run("key", answer) == "answer"


async def test_what_is_forgotten_does_not_answer_later_questions() -> None:
    calls: SingleFlight[str, str] = SingleFlight(max_seconds=0.05)
    outdated = asyncio.create_task(calls.run("key", never))
    await asyncio.sleep(0)
    calls.forget("key")
    assert await calls.run("key", answer) == "answer"
    with pytest.raises(TimeoutError):
        await outdated
