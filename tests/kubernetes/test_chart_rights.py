"""The accounts of the Helm chart on a real cluster: what they need is allowed, everything else is 403."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from testkit.kubernetes.cluster import Cluster
from tests.deploy.test_helm_roles import CLUSTER_RIGHTS, RIGHTS
from tests.kubernetes.chart import Chart, new_release

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
# Powers beyond those of the objects in a namespace.
SPECIAL = ("pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "pods/eviction")
FORBIDDEN_GROUPS = (
    ("apps", "deployments"),
    ("batch", "jobs"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("networking.k8s.io", "networkpolicies"),
    ("storage.k8s.io", "storageclasses"),
)

Right = tuple[str, str, str]


@pytest.fixture(scope="module")
def chart(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chart]:
    """Return a release without running Pods: rights need none."""
    directory = tmp_path_factory.mktemp("chart")
    with new_release(cluster, UNUSED, directory) as chart:
        chart.helm("install", "codehub", *chart.arguments, "--no-hooks")
        yield chart


def granted(account: str) -> set[Right]:
    """Return what the account may do with objects of any name in the namespace of the workspaces."""
    unnamed = {resource: verbs for resource, verbs in RIGHTS[account].items() if " " not in resource}
    return {("", resource, verb) for resource, verbs in unnamed.items() for verb in verbs.split()}


def tried() -> list[Right]:
    resources = {name.split()[0] for rights in RIGHTS.values() for name in rights}
    core = sorted(resources | set(SPECIAL) | {"services", "serviceaccounts", "replicationcontrollers"})
    return [
        *(("", resource, verb) for resource, verb in product(core, VERBS)),
        *((group, resource, verb) for (group, resource), verb in product(FORBIDDEN_GROUPS, VERBS)),
    ]


def allowed(chart: Chart, account: str, right: Right, namespace: str, name: str = "") -> bool:
    group, resource, verb = right
    resource, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
    review = {
        "spec": {
            "user": f"system:serviceaccount:{chart.namespace}:{account}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {**attributes, "namespace": namespace, "name": name},
        }
    }
    answer = chart.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize("account", sorted(RIGHTS))
def test_an_account_may_do_what_it_needs_and_nothing_else(chart: Chart, account: str) -> None:
    found = {right for right in tried() if allowed(chart, account, right, chart.workspaces)}
    assert found == granted(account)


@pytest.mark.parametrize("account", sorted(RIGHTS))
def test_an_account_may_do_nothing_in_the_namespace_of_the_control_plane(chart: Chart, account: str) -> None:
    assert [right for right in tried() if allowed(chart, account, right, chart.namespace)] == []


@pytest.mark.parametrize("account", sorted(RIGHTS))
def test_an_account_reads_only_the_marker_and_its_own_namespace_by_name(chart: Chart, account: str) -> None:
    marker, own = ("", "configmaps", "get"), ("", "namespaces", "get")
    assert allowed(chart, account, marker, chart.workspaces, "codehub-store-codehub")
    assert not allowed(chart, account, marker, chart.workspaces, "another")
    assert allowed(chart, account, own, chart.workspaces, chart.workspaces)
    assert not allowed(chart, account, own, "kube-system", "kube-system")


@pytest.mark.parametrize("account", sorted(RIGHTS))
def test_only_the_worker_has_rights_to_nodes_and_volumes(chart: Chart, account: str) -> None:
    (rights,) = CLUSTER_RIGHTS.values()
    wanted = {("", resource, verb) for resource, verbs in rights.items() for verb in verbs.split()}
    right = product(("",), rights, VERBS)
    found = {each for each in right if allowed(chart, account, each, "")}
    assert found == (wanted if account == "codehub-worker" else set())


# Nothing connects to these.
UNUSED = {
    "CODEHUB_DATABASE_URL": "postgresql://unused:1/codehub",
    "CODEHUB_REDIS_URL": "redis://unused:1",
    "CODEHUB_S3_ENDPOINT_URL": "http://unused:1",
    "CODEHUB_S3_ACCESS_KEY": "unused",
    "CODEHUB_S3_SECRET_KEY": "unused",
    "CODEHUB_EGRESS_KEY": "unused",
    "CODEHUB_TEMPORAL_ADDRESS": "unused:1",
    "CODEHUB_TEMPORAL_NAMESPACE": "default",
    "CODEHUB_TEMPORAL_TLS_SERVER_NAME": "unused",
    **{f"CODEHUB_TEMPORAL_TLS_{file}_FILE": str(Path(__file__)) for file in ("CA", "CERT", "KEY")},
}
