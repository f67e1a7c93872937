"""Which reasons end an operation, and how long the others wait."""

import pytest

from codehub.domain.failures import (
    EXPLANATIONS,
    MAX_RETRY,
    TERMINAL,
    Failure,
    Permanent,
    Transient,
    is_terminal,
    retry_delay_seconds,
)
from codehub.domain.states import ErrorReason


def test_terminal_reasons_are_those_of_the_contract() -> None:
    assert {
        ErrorReason.TIMEOUT,
        ErrorReason.DATA_LOST,
        ErrorReason.IMAGE_PULL_FAILED,
        ErrorReason.CONTAINER_WITHOUT_VOLUME,
        ErrorReason.ARCHIVE_CORRUPTED,
        ErrorReason.RETRY_EXCEEDED,
    } == TERMINAL
    assert not is_terminal(None)


@pytest.mark.parametrize("reason", TERMINAL)
def test_a_terminal_reason_is_never_retried(reason: ErrorReason) -> None:
    assert retry_delay_seconds(reason, 1, 0) is None


@pytest.mark.parametrize(("failed_attempts", "delay"), [(1, 5), (2, 15), (MAX_RETRY, None)])
def test_the_wait_grows_and_ends(failed_attempts: int, delay: float | None) -> None:
    assert retry_delay_seconds(ErrorReason.UNREACHABLE, failed_attempts, 0) == delay


@pytest.mark.parametrize(("jitter", "delay"), [(-1, 4), (0, 5), (1, 6)])
def test_jitter_spreads_the_wait_by_a_fifth(jitter: float, delay: float) -> None:
    assert retry_delay_seconds(ErrorReason.ACTION_FAILED, 1, jitter) == pytest.approx(delay)


@pytest.mark.parametrize("kind", [Permanent, Transient])
def test_a_failure_has_a_reason_and_a_message_for_people(kind: type[Failure]) -> None:
    failure = kind(ErrorReason.UNREACHABLE, "S3 does not respond.")
    assert (failure.reason, failure.message, str(failure)) == (
        ErrorReason.UNREACHABLE,
        "S3 does not respond.",
        "S3 does not respond.",
    )


def test_every_reason_says_what_happened_and_what_to_do() -> None:
    assert set(EXPLANATIONS) == set(ErrorReason)
    assert all(text.count(".") >= 2 for text in EXPLANATIONS.values())
