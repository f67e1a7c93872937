"""What is particular to homes as claims: a deletion cannot be taken back, so it must never be a mistake."""

import asyncio
import uuid
from dataclasses import replace

import pytest

from codehub.adapters.kubernetes.claims import find_claim, mark_claim
from codehub.adapters.kubernetes.options import MIB
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from testkit.docker_engine import JOB_IMAGE
from testkit.fakes import IMAGE
from testkit.kubernetes.deadline import wait_until
from tests.contracts.kubernetes_harness import KubernetesHarness
from tests.kubernetes.fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]
FINALIZER = "codehub.test/held"


@pytest.fixture
async def workspace_id(harness: KubernetesHarness) -> WorkspaceId:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    return workspace_id


def hold(harness: KubernetesHarness, workspace_id: WorkspaceId, finalizers: list[str]) -> None:
    """Keep the claim from going away, as a storage driver can; an empty list lets it go."""
    harness.api.patch(harness.claim_path(workspace_id), {"metadata": {"finalizers": finalizers}})


async def test_a_claim_that_waits_for_its_first_pod_is_present(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    claim = harness.find_claim(workspace_id)
    assert claim is not None
    assert claim["status"]["phase"] == "Pending"
    assert await harness.volumes.observe(workspace_id) is VolumeFact.PRESENT
    assert await harness.volumes.list_all() == [workspace_id]


async def test_a_terminating_claim_is_present_waited_for_and_then_explained(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    hold(harness, workspace_id, [FINALIZER])
    hasty = replace(harness.options, timeouts=replace(harness.options.timeouts, claim_removal=1))
    volumes = KubernetesVolumes(harness.kubernetes, hasty)
    for call in (volumes.remove, volumes.remove, volumes.provision):
        with pytest.raises(Transient, match=FINALIZER) as caught:
            await call(workspace_id)
        assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert await harness.volumes.observe(workspace_id) is VolumeFact.PRESENT
    with pytest.raises(Transient, match="is being removed"):
        await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    provisioning = asyncio.create_task(harness.volumes.provision(workspace_id))
    hold(harness, workspace_id, [])
    await provisioning
    claim = harness.find_claim(workspace_id)
    assert claim is not None
    assert "deletionTimestamp" not in claim["metadata"]


async def test_a_removal_loses_against_a_mark(harness: KubernetesHarness, workspace_id: WorkspaceId) -> None:
    claim = await find_claim(harness.kubernetes, harness.options, workspace_id)
    assert claim is not None
    await mark_claim(harness.kubernetes, harness.options, workspace_id)
    with pytest.raises(Transient, match="has just been used"):
        await harness.volumes._delete(claim)
    found = harness.find_claim(workspace_id)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


async def test_a_start_takes_its_pod_back_if_the_claim_was_removed_meanwhile(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    def remove_claim(progress: Progress) -> None:
        """The first report comes after the first mark, and before the Pod exists."""
        del progress
        harness.api.delete(harness.claim_path(workspace_id))

    with pytest.raises(Transient, match="does not exist") as caught:
        await harness.instances.start(InstanceRequest(workspace_id, IMAGE), remove_claim)
    assert caught.value.reason is ErrorReason.ACTION_FAILED
    assert harness.find_pod(workspace_id) is None


async def test_a_start_and_a_removal_at_once_never_leave_an_instance_without_its_volume(
    harness: KubernetesHarness,
) -> None:
    async def race() -> bool:
        workspace_id = WorkspaceId(str(uuid.uuid4()))
        await harness.volumes.provision(workspace_id)
        starting = harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
        removal = harness.volumes.remove(workspace_id)
        started, removed = await asyncio.gather(starting, removal, return_exceptions=True)
        assert isinstance(started, Transient) or isinstance(removed, Transient)
        claim, pod = harness.find_claim(workspace_id), harness.find_pod(workspace_id)
        assert (pod is None) == isinstance(started, Transient)
        assert pod is None or (claim is not None and "deletionTimestamp" not in claim["metadata"])
        return pod is not None

    await asyncio.gather(*(race() for _ in range(6)))


async def test_a_claim_that_a_foreign_exited_pod_uses_is_not_removed(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": volume_name(workspace_id)}}
    pods = f"{harness.namespace.path}/pods"
    container = {
        "name": "c",
        "image": JOB_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["true"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    harness.api.create(pods, {"metadata": {"name": "curious"}, "spec": spec})
    wait_until(lambda: harness.api.get(f"{pods}/curious")["status"]["phase"] == "Succeeded", "it has exited")
    with pytest.raises(Transient, match="curious"):
        await harness.volumes.remove(workspace_id)
    claim = harness.find_claim(workspace_id)
    assert claim is not None
    assert "deletionTimestamp" not in claim["metadata"]
    harness.api.delete(f"{pods}/curious")
    wait_until(lambda: harness.api.find(f"{pods}/curious") is None, "the Pod is gone")
    await harness.volumes.remove(workspace_id)
    assert harness.find_claim(workspace_id) is None


async def test_a_smaller_claim_grows_and_never_shrinks(
    harness: KubernetesHarness, workspace_id: WorkspaceId
) -> None:
    harness.home(workspace_id)
    wait_until(
        lambda: harness.api.get(harness.claim_path(workspace_id))["status"]["phase"] == "Bound", "bound"
    )
    for size in (300 * MIB, 50 * MIB):
        claims = replace(harness.options.claims, size_bytes=size)
        options = replace(harness.options, claims=claims)
        await KubernetesVolumes(harness.kubernetes, options).provision(workspace_id)
        claim = harness.find_claim(workspace_id)
        assert claim is not None
        assert claim["spec"]["resources"]["requests"]["storage"] == str(300 * MIB)


async def test_a_claim_that_codehub_did_not_create_is_left_alone(harness: KubernetesHarness) -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    path = f"{harness.namespace.path}/persistentvolumeclaims"
    harness.api.create(path, {"metadata": {"name": volume_name(workspace_id)}, "spec": spec})
    assert await harness.volumes.observe(workspace_id) is VolumeFact.ABSENT
    with pytest.raises(Transient, match="did not create"):
        await harness.volumes.provision(workspace_id)
    await harness.volumes.remove(workspace_id)
    assert harness.find_claim(workspace_id) is not None
