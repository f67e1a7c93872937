"""Pods as they are created and understood, without a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.options import OWN_IMAGE, Egress, KubernetesOptions, Placement
from codehub.adapters.kubernetes.pod_spec import differences, instance_pod, with_secrets
from codehub.adapters.kubernetes.pods import PodInfo, dump_traits, explain_exit, load_traits
from codehub.adapters.kubernetes.quantities import format_cpus, parse_bytes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.image_traits import ImageTraits, traits_from_labels
from codehub.ports import InstanceRequest

DOCKERFILE = Path(__file__).parents[2] / "images" / "workspace" / "Dockerfile"
WORKSPACE_ID = WorkspaceId("0b0e5a3e-6c1f-4a54-9d0a-0d6a3c2f9a11")
REQUEST = InstanceRequest(WORKSPACE_ID, "default")
READY = [{"type": "Ready", "status": "True"}]


def info(status: dict[str, Any], **metadata: str) -> PodInfo:
    name = {"name": "codehub-ws", "uid": "1"}
    document = {"metadata": {**name, **metadata}, "spec": {"nodeName": "node7", "containers": []}}
    pod = Pod.from_dict({**document, "status": status})
    assert isinstance(pod, Pod)
    return PodInfo.of(pod)


def ended(**terminated: object) -> list[dict[str, Any]]:
    state = {"terminated": {"exitCode": 137, **terminated}}
    return [
        {"name": "ide", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state},
    ]


@pytest.mark.parametrize(
    ("status", "fact"),
    [
        ({"phase": "Pending"}, ContainerFact.NOT_READY),
        ({"phase": "Running", "conditions": READY}, ContainerFact.READY),
        ({"phase": "Running", "conditions": []}, ContainerFact.UNHEALTHY),
        # The API sets this when the node of a running Pod is lost.
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, ContainerFact.UNHEALTHY),
        ({"phase": "Unknown"}, ContainerFact.UNHEALTHY),
        ({"phase": "Failed", "conditions": READY}, ContainerFact.NOT_READY),
        ({"phase": "Succeeded"}, ContainerFact.NOT_READY),
        # The phase follows a little later.
        ({"phase": "Running", "conditions": READY, "containerStatuses": ended()}, ContainerFact.NOT_READY),
    ],
)
def test_the_fact_of_a_pod(status: dict[str, Any], fact: ContainerFact) -> None:
    assert info(status).fact is fact


def test_a_terminating_pod_takes_no_traffic() -> None:
    found = info({"phase": "Running", "conditions": READY}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert found.fact is ContainerFact.NOT_READY


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Failed", "containerStatuses": ended(reason="OOMKilled")}, "more memory than its limit"),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            r"evicted it \(low on memory\)",
        ),
        ({"phase": "Failed", "reason": "NodeLost"}, "Its node node7 went down"),
        ({"phase": "Failed", "containerStatuses": ended(reason="Error")}, "exited with status 137"),
        ({"phase": "Failed"}, r"It ended \(Failed\)"),
    ],
)
def test_an_end_is_told_as_what_it_was(status: dict[str, Any], words: str) -> None:
    assert re.search(words, explain_exit(info(status)))


def test_the_traits_of_our_own_image_are_those_of_its_labels() -> None:
    labels = dict(re.findall(r'(codehub\.io/[a-z-]+)="([^"]*)"', DOCKERFILE.read_text()))
    assert traits_from_labels(labels) == OWN_IMAGE


@pytest.mark.parametrize(
    "reference",
    ["registry.example:5000/ide", "registry.example:5000/ide:3", "registry.example:5000/ide@sha256:0"],
)
def test_the_traits_of_an_image_go_by_its_name_without_tag(reference: str) -> None:
    traits = ImageTraits(port=8888)
    options = KubernetesOptions(image_traits={"registry.example:5000/ide": traits})
    assert options.traits_of(reference) == traits
    assert options.traits_of("default") == OWN_IMAGE


def test_secrets_are_new_for_each_pod_and_make_no_difference() -> None:
    options = KubernetesOptions(egress=Egress("10.0.0.1:3128", "key"))
    pods = [with_secrets(instance_pod(REQUEST, options), WORKSPACE_ID, options, OWN_IMAGE) for _ in range(2)]
    first, second = (PodInfo.of(pod) for pod in pods)
    assert first.secret != second.secret
    assert first.headers == (("Cookie", f"code-server-session={first.secret}"),)
    assert first.configuration == second.configuration
    assert differences(first.configuration, pods[1]) == ()


def test_the_agent_relays_to_the_gateway_and_programs_know_it() -> None:
    options = KubernetesOptions(egress=Egress("10.0.0.1:3128", "key"))
    pod = with_secrets(instance_pod(REQUEST, options), WORKSPACE_ID, options, OWN_IMAGE)
    assert pod.spec is not None
    variables = {each.name: each.value or "" for each in pod.spec.containers[0].env or []}
    assert variables["HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert '"gateway": "10.0.0.1:3128"' in variables["CODEHUB_AGENT"]


def test_a_changed_placement_is_a_difference_by_name() -> None:
    before = PodInfo.of(instance_pod(REQUEST, KubernetesOptions()))
    placed = KubernetesOptions(
        placement=Placement(node_selector={"disk": "ssd"}, tolerations=({"key": "a", "operator": "Exists"},))
    )
    assert differences(before.configuration, instance_pod(REQUEST, placed)) == ("other settings",)
    other = KubernetesOptions(default_image="other")
    assert differences(before.configuration, instance_pod(REQUEST, other)) == ("image",)


@pytest.mark.parametrize(
    ("quantity", "expected"), [("10Gi", 10 << 30), ("1k", 1000), ("1500m", 1), ("1e3", 1000), ("7", 7)]
)
def test_quantities(quantity: str, expected: int) -> None:
    assert parse_bytes(quantity) == expected


def test_cpus_are_thousandths() -> None:
    assert [format_cpus(each) for each in (2.0, 0.1, 0.0001)] == ["2000m", "100m", "1m"]


def test_traits_that_only_a_newer_release_knows_are_ignored() -> None:
    recorded = ImageTraits(ide="tiny", port=9000)
    newer = dump_traits(recorded).replace("{", '{"color": "blue", ')
    assert load_traits(newer) == recorded
    assert load_traits(None) == ImageTraits()
