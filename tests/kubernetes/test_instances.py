"""What is particular to instances as Pods: one Pod per name, restricted, and every end told as such."""

import asyncio
import uuid
from dataclasses import replace

import pytest

from codehub.adapters.kubernetes.options import MIB
from codehub.adapters.kubernetes.pods import PodInfo, explain_exit
from codehub.domain.conditions import ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from testkit.fakes import IMAGE
from tests.contracts.kubernetes_harness import KubernetesHarness
from tests.kubernetes.fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]


@pytest.fixture
async def workspace_id(harness: KubernetesHarness) -> WorkspaceId:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    return workspace_id


def ignore(progress: Progress) -> None:
    del progress


async def start(harness: KubernetesHarness, workspace_id: WorkspaceId) -> None:
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), ignore)


async def test_eight_starts_at_once_make_one_pod(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await asyncio.gather(*(start(harness, workspace_id) for _ in range(8)))
    [pod] = harness.list_mine("pods")
    assert pod["status"]["phase"] == "Running"
    assert harness.count(workspace_id) == 1


async def test_the_pod_meets_the_restricted_standard_and_has_no_token(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    [pod] = harness.list_mine("pods")
    spec, [container] = pod["spec"], pod["spec"]["containers"]
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert [each["name"] for each in container["volumeMounts"]] == ["home", "temporary"]
    assert spec["restartPolicy"] == "Never"


async def test_an_image_that_cannot_be_pulled_fails_with_the_words_of_the_registry(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    request = InstanceRequest(workspace_id, "127.0.0.1:9/none:1")
    with pytest.raises(Permanent) as caught:
        await harness.instances.start(request, ignore)
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert "connection refused" in caught.value.message
    assert harness.find_pod(workspace_id) is None


async def test_a_pod_that_no_node_can_run_is_progress_until_its_time_is_up(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    resources = replace(harness.options.resources, requested_cpus=999, cpus=999)
    timeouts = replace(harness.options.timeouts, launch=6)
    reports: list[Progress] = []
    with pytest.raises(Transient, match="Insufficient cpu") as caught:
        await harness.with_options(resources=resources, timeouts=timeouts).start(
            InstanceRequest(workspace_id, IMAGE), reports.append
        )
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert "waiting for a node" in {each.step for each in reports}
    assert harness.find_pod(workspace_id) is None


async def test_an_instance_that_needs_more_memory_than_its_limit_is_told_as_such(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    resources = replace(harness.options.resources, memory_bytes=14 * MIB)
    with pytest.raises(Transient, match="used more memory than its limit"):
        await harness.with_options(resources=resources).start(InstanceRequest(workspace_id, IMAGE), ignore)


async def test_an_evicted_instance_is_told_as_such_and_replaced(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    harness.kill(workspace_id)
    harness.api.patch(f"{harness.pod_path(workspace_id)}/status", {"status": status})
    assert await harness.instances.observe(workspace_id) is ContainerFact.NOT_READY
    info = await harness.instances._find(workspace_id)
    assert info is not None
    assert "evicted it (The node was low on resource: memory.)" in explain_exit(info)
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


async def test_a_pod_that_was_deleted_behind_our_back_is_absent_and_can_start_again(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.api.delete(harness.pod_path(workspace_id))
    assert await harness.instances.find_upstream(workspace_id) is None
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY
    assert await harness.volumes.observe(workspace_id) is VolumeFact.PRESENT


async def test_each_pod_has_a_secret_of_its_own(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    first = await harness.instances.find_upstream(workspace_id)
    await harness.instances.stop(workspace_id)
    await start(harness, workspace_id)
    second = await harness.instances.find_upstream(workspace_id)
    assert first is not None
    assert second is not None
    assert first.headers != second.headers


async def test_a_start_without_a_volume_creates_no_pod(harness: KubernetesHarness) -> None:
    with pytest.raises(Transient):
        await start(harness, WorkspaceId(str(uuid.uuid4())))
    assert harness.list_mine("pods") == []


async def test_a_foreign_pod_of_this_name_is_not_ours(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    harness.api.patch(harness.pod_path(workspace_id), {"metadata": {"labels": {"codehub.io/project": "x"}}})
    try:
        assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT
        await harness.instances.stop(workspace_id)
        pod = harness.find_pod(workspace_id)
        assert pod is not None
        assert "deletionTimestamp" not in pod["metadata"]
    finally:
        harness.api.delete(harness.pod_path(workspace_id))


def test_a_pod_without_a_status_is_waiting() -> None:
    from lightkube.models.meta_v1 import ObjectMeta  # noqa: PLC0415
    from lightkube.resources.core_v1 import Pod  # noqa: PLC0415

    assert PodInfo.of(Pod(metadata=ObjectMeta(name="new"))).fact is ContainerFact.NOT_READY
