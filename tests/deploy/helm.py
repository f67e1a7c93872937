"""Render the Helm chart and find the objects that it makes."""

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]

from testkit.needs import do_without
from tests.deploy.programs import ROOT, run

CHART = ROOT / "deploy/helm/codehub"
NAMESPACE = "codehub"
VALUE_SETS = ("minimal", "everything", "small")
# The schemas begin with 1.25; tests/kubernetes installs the chart on 1.20.
VERSIONS = ("1.25", "1.28", "1.31", "1.34", "1.37")
PARTS = ("api", "proxy", "worker", "egress")
HELM = ROOT / "node_modules/.bin/helm"

Object = Mapping[str, Any]


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    if not HELM.exists():
        do_without("helm", "make node_modules/.synced")
    return run(str(HELM), *arguments)


def template(
    values: str = "minimal", *arguments: str, version: str = "1.30"
) -> "subprocess.CompletedProcess[str]":
    """Run `helm template`, with hooks as `helm install` would run them."""
    file = str(CHART / f"ci/{values}.yaml")
    options = ("--namespace", NAMESPACE, "--values", file, "--kube-version", version, "--is-upgrade")
    return helm("template", "codehub", str(CHART), *options, *arguments)


@functools.cache
def rendered(values: str = "minimal", *arguments: str, version: str = "1.30") -> tuple[Object, ...]:
    """Return all objects."""
    result = template(values, *arguments, version=version)
    assert result.returncode == 0, result.stderr
    return tuple(found for found in yaml.safe_load_all(result.stdout) if found)


def refusal(*arguments: str, values: str = "minimal") -> str:
    """Return the sentence with which the chart refuses values, without Helm's traces around it."""
    result = template(values, *arguments)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith(("Error:", "- "))]
    return lines[-1].rpartition("error calling fail: ")[2]


def of_kind(kind: str, values: str = "minimal", **more: str) -> dict[str, Object]:
    """Return the objects of a kind by name."""
    return {each["metadata"]["name"]: each for each in rendered(values, **more) if each["kind"] == kind}


def pods(values: str = "minimal") -> dict[str, Object]:
    """Return the Pod templates by part."""
    found = [each for each in rendered(values) if each["kind"] in {"Deployment", "Job"}]
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"] for each in found
    }


def container_of(pod: Object) -> Object:
    (container,) = pod["spec"]["containers"]
    found: Object = container
    return found


def environment_of(pod: Object) -> dict[str, str]:
    """Return the variables of a Pod; those from Secrets have values that fit."""
    return {
        each["name"]: each["value"] if "value" in each else SECRETS.get(each["name"], "s3cret")
        for each in container_of(pod)["env"]
    }


def secrets_of(pod: Object) -> set[str]:
    """Return the names of the variables that come from Secrets."""
    return {each["name"] for each in container_of(pod)["env"] if "valueFrom" in each}


def texts(value: object) -> Iterator[str]:
    """Yield every text inside an object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    return found


def defaults() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


SECRETS = {
    "CODEHUB_DATABASE_URL": "postgresql://codehub:s3cret@db:5432/codehub",
    "CODEHUB_REDIS_URL": "redis://:s3cret@redis:6379/0",
}
