"""`codehub doctor`: whether the cluster has what workspaces need. Nothing here changes the cluster."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator

from cli.machine_checks import Finding
from codehub.adapters.kubernetes.client import Kubernetes
from codehub.adapters.kubernetes.inspection import (
    NotPermitted,
    find_enforcing_plugin,
    find_home_class,
    find_missing_rights,
    find_namespace_labels,
    find_open_directions,
)
from codehub.adapters.kubernetes.options import KubernetesOptions
from codehub.adapters.kubernetes.rights import Right, cluster_rights, namespace_rights
from codehub.domain.failures import Failure
from codehub.providers import kubernetes_options_of, open_cluster
from codehub.settings import Settings, SettingsError

CLUSTER = "cluster"
# From this version on, every cluster has Pod Security admission.
OLDEST_VERSION = (1, 25)
POD_SECURITY = "pod-security.kubernetes.io/enforce"
RESTRICTED = "restricted"
CHECK_CONNECTION = (
    "check the API server, and the address and the credentials in CODEHUB_KUBERNETES_KUBECONFIG"
)
USE_CHART = "install the Helm chart, which creates it"
AS_ADMINISTRATOR = "run `codehub doctor` with the kubeconfig of an administrator"


def kubernetes_findings(settings: Settings) -> Iterator[Finding]:
    yield from asyncio.run(_examine(settings))


async def _examine(settings: Settings) -> list[Finding]:
    """Stop at the first request that fails: the next ones would say the same."""
    findings: list[Finding] = []
    try:
        options = kubernetes_options_of(settings)
        async with open_cluster(settings) as kubernetes:
            async for finding in _checks(kubernetes, options):
                findings.append(finding)  # noqa: PERF401 (keeps those before an error)
    # ValueError and OSError: what answers is no API server, or a certificate cannot be read.
    except (Failure, SettingsError, ValueError, OSError) as error:
        findings.append(Finding(CLUSTER, False, str(error).rstrip("."), CHECK_CONNECTION))
    return findings


async def _checks(kubernetes: Kubernetes, options: KubernetesOptions) -> AsyncIterator[Finding]:
    version = await kubernetes.read_version()
    # A server answers the question for its version to anybody, but a review only to whom it knows.
    missing = await find_missing_rights(
        kubernetes, namespace_rights(kubernetes.namespace, options.marker_name)
    )
    yield _version(kubernetes, version)
    yield await _namespace(kubernetes)
    yield _namespace_rights(kubernetes, missing)
    yield _cluster_rights(await find_missing_rights(kubernetes, cluster_rights()))
    yield await _storage_class(kubernetes, options.claims.storage_class)
    yield _images(options)
    yield await _network_policies(kubernetes)
    yield await _enforcement(kubernetes)


def _version(kubernetes: Kubernetes, version: str) -> Finding:
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    remedy = "upgrade it to Kubernetes 1.25 or newer: older ones may not enforce Pod Security"
    detail = f"{kubernetes.url} runs {version}"
    return Finding(CLUSTER, numbers >= OLDEST_VERSION, detail, remedy, required=False)


async def _namespace(kubernetes: Kubernetes) -> Finding:
    name = f"namespace {kubernetes.namespace}"
    try:
        labels = await find_namespace_labels(kubernetes)
    except NotPermitted:
        return _unchecked(name)
    if labels is None:
        return Finding(name, False, "does not exist", f"{USE_CHART}, or set CODEHUB_KUBERNETES_NAMESPACE")
    level = labels.get(POD_SECURITY)
    remedy = f"kubectl label namespace {kubernetes.namespace} --overwrite {POD_SECURITY}={RESTRICTED}"
    detail = f"Pod Security {level}" if level else "no Pod Security label"
    return Finding(name, level == RESTRICTED, detail, remedy, required=False)


def _namespace_rights(kubernetes: Kubernetes, missing: Iterable[Right]) -> Finding:
    remedy = "install the Helm chart, whose Role grants them, and run this in a worker's Pod"
    if lacking := ", ".join(map(str, missing)):
        return Finding("rights", False, f"this account may not: {lacking}", remedy)
    return Finding("rights", True, f"all that workers need in {kubernetes.namespace}")


def _cluster_rights(missing: Iterable[Right]) -> Finding:
    name = "rights in the cluster"
    remedy = (
        "grant them as the chart's ClusterRole does; without them, a lost node is not told from a lost home, "
        "or an administrator has to keep its volumes by hand"
    )
    if lacking := ", ".join(map(str, missing)):
        return Finding(name, False, f"this account may not: {lacking}", remedy, required=False)
    return Finding(
        name, True, "reads nodes and volumes, and can keep a volume of a lost node", required=False
    )


async def _storage_class(kubernetes: Kubernetes, wanted: str | None) -> Finding:
    name = "storage class"
    try:
        found = await find_home_class(kubernetes, wanted)
    except NotPermitted:
        return _unchecked(name)
    if found is None:
        detail = f"{wanted} does not exist" if wanted else "the cluster has no default class"
        return Finding(name, False, detail, "set CODEHUB_KUBERNETES_STORAGE_CLASS to one of `kubectl get sc`")
    if found.can_grow:
        return Finding(name, True, f"{found.name}, whose volumes can grow")
    remedy = f"set allowVolumeExpansion of {found.name} if its driver can; otherwise homes keep their size"
    return Finding(name, False, f"{found.name}, whose volumes cannot grow", remedy, required=False)


def _images(options: KubernetesOptions) -> Finding:
    """Judge only the names: whether nodes can pull an image shows when a Pod starts."""
    images = (options.default_image, options.job_image)
    if local := [image for image in images if "/" not in image]:
        remedy = (
            "set CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF and CODEHUB_KUBERNETES_JOB_IMAGE to images in your "
            "registry, unless all nodes have these"
        )
        return Finding("images", False, f"in no registry: {', '.join(local)}", remedy, required=False)
    detail = f"{', '.join(images)}; whether nodes can pull them shows at the first start"
    return Finding("images", True, detail, required=False)


async def _network_policies(kubernetes: Kubernetes) -> Finding:
    name = "network policies"
    try:
        open_directions = await find_open_directions(kubernetes)
    except NotPermitted:
        return _unchecked(name)
    if not open_directions:
        return Finding(name, True, "deny by default what comes in and goes out")
    detail = f"none denies {' and '.join(sorted(open_directions))} by default"
    return Finding(name, False, detail, "install the Helm chart with network.policies: true")


async def _enforcement(kubernetes: Kubernetes) -> Finding:
    """Look for a plugin that enforces policies; the API itself does not say whether anything does."""
    name = "policy enforcement"
    remedy = "try it from a workspace, as docs/kubernetes.md says: policies that nobody enforces are no walls"
    try:
        plugin = await find_enforcing_plugin(kubernetes)
    except NotPermitted:
        return _unchecked(name)
    if plugin is None:
        return Finding(name, False, "unknown: no network plugin that we know", remedy, required=False)
    detail = f"by {plugin.name}, ready on {plugin.ready} of {plugin.nodes} nodes; only a trial proves it"
    return Finding(name, 0 < plugin.nodes == plugin.ready, detail, remedy, required=False)


def _unchecked(name: str) -> Finding:
    detail = "not checked: this account may not read it"
    return Finding(name, False, detail, AS_ADMINISTRATOR, required=False)
