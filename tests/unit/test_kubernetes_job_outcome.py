"""What the status of a storage job's Pod means."""

import json
from typing import Any, cast

import pytest
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.jobs.outcome import check_outcome, has_ended, is_lost, launch_failure
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput

DONE = json.dumps({"event": "done", "bytes": 3, "sha256": "0" * 64})
STOPPED = json.dumps({"event": "error", "reason": "ActionFailed", "message": "stopped"})


def pod(phase: str, state: dict[str, Any] | None = None, **status: Any) -> Pod:  # noqa: ANN401 (any field)
    containers = [
        {"name": "job", "state": state, "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    ]
    document = {
        "metadata": {"name": "codehub-job"},
        "spec": {"nodeName": "node1", "containers": [{"name": "job", "image": "example.org/job:1"}]},
        "status": {"phase": phase, "containerStatuses": containers if state else [], **status},
    }
    return cast("Pod", Pod.from_dict(document))


def terminated(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


def failure_of(found: Pod) -> Failure:
    assert has_ended(found)
    with pytest.raises(Failure) as caught:
        check_outcome(found, JobOutput(lambda _: None))
    return caught.value


def test_the_termination_message_has_the_result() -> None:
    output = JobOutput(lambda _: None)
    check_outcome(pod("Succeeded", terminated(0, DONE, "Completed")), output)
    assert output.stored_archive("key").size_bytes == 3


def test_a_job_that_has_finished_counts_even_if_its_pod_was_evicted_later() -> None:
    check_outcome(pod("Failed", terminated(0, DONE), reason="Evicted"), JobOutput(lambda _: None))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (pod("Failed", reason="Evicted", message="low on memory"), "evicted it (low on memory)"),
        (pod("Failed", terminated(143, STOPPED), reason="Evicted"), "evicted"),
        (pod("Failed", terminated(137, "", "OOMKilled")), "more memory than its limit"),
        (pod("Failed", terminated(143, STOPPED), reason="DeadlineExceeded"), "did not finish"),
        (pod("Failed", reason="NodeLost"), "node1 went down"),
        (pod("Failed", terminated(137)), "status 137"),
        (pod("Failed", terminated(143, STOPPED)), "stopped"),
        (pod("Succeeded", terminated(0, "", "Completed")), "status 0"),
    ],
)
def test_a_job_that_did_not_finish_is_tried_again(found: Pod, words: str) -> None:
    failure = failure_of(found)
    assert (type(failure), failure.reason) == (Transient, ErrorReason.ACTION_FAILED)
    assert words in failure.message


def test_the_job_itself_knows_best_what_is_wrong_with_an_archive() -> None:
    message = json.dumps({"event": "error", "reason": "ArchiveCorrupted", "message": "sha256"})
    failure = failure_of(pod("Failed", terminated(12, message)))
    assert (type(failure), failure.reason) == (Permanent, ErrorReason.ARCHIVE_CORRUPTED)


def test_a_truncated_termination_message_leaves_the_exit_code() -> None:
    assert failure_of(pod("Failed", terminated(10, DONE[:20]))).reason is ErrorReason.DATA_LOST


def test_a_missing_image_is_told_in_the_words_of_the_registry() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "denied: no such project."}}
    failure = launch_failure(pod("Pending", waiting))
    assert (type(failure), failure.reason) == (Permanent, ErrorReason.IMAGE_PULL_FAILED)
    assert "example.org/job:1" in failure.message
    assert "ErrImagePull: denied: no such project. " in failure.message


def test_a_pod_without_a_node_tells_why() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    failure = launch_failure(pod("Pending", conditions=[scheduled]))
    assert (type(failure), failure.reason) == (Transient, ErrorReason.ACTION_FAILED)
    assert "Unschedulable: 0/2 nodes" in failure.message


@pytest.mark.parametrize(("ready", "lost"), [("True", False), ("False", True)])
def test_a_running_pod_that_is_not_ready_is_on_a_lost_node(ready: str, lost: bool) -> None:
    conditions = [{"type": "Ready", "status": ready}]
    running = {"running": {"startedAt": None}}
    assert is_lost(pod("Running", running, conditions=conditions)) is lost
    assert is_lost(pod("Pending", conditions=conditions)) is False
