"""The Helm chart renders valid objects for every supported Kubernetes, and refuses what cannot work."""

import json
import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from codehub.egress_policy import is_enforced
from codehub.providers import kubernetes_options_of
from codehub.settings import VARIABLES, SecretUrl, load_settings, unknown_variables
from tests.deploy.helm import (
    CHART,
    PARTS,
    VALUE_SETS,
    VERSIONS,
    container_of,
    defaults,
    environment_of,
    helm,
    of_kind,
    pods,
    refusal,
    rendered,
    schema,
    secrets_of,
    template,
    texts,
)
from tests.deploy.programs import ROOT

# Kinds of extensions: the schemas of Kubernetes do not have them.
EXTENSIONS = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}
Described = dict[str, Any]
BOTH = [(values, part) for values in VALUE_SETS for part in (*PARTS, "migrate")]


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_chart_passes_lint(values: str) -> None:
    result = helm("lint", "--strict", str(CHART), "--values", str(CHART / f"ci/{values}.yaml"))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_object_is_valid(values: str, version: str) -> None:
    objects = [each for each in rendered(values, version=version) if each["kind"] not in EXTENSIONS]
    assert len(objects) > 20
    for each in objects:
        kubernetes_validate.validate(dict(each), version, strict=True)


def test_an_invalid_object_is_noticed() -> None:
    deployment = json.loads(json.dumps(of_kind("Deployment")["codehub-api"]))
    deployment["spec"]["template"]["spec"]["containers"][0]["prots"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.30", strict=True)


@pytest.mark.parametrize(
    ("version", "autoscaling", "disruption"),
    [
        ("1.20", "autoscaling/v2beta2", "policy/v1beta1"),
        ("1.22", "autoscaling/v2beta2", "policy/v1"),
        ("1.25", "autoscaling/v2", "policy/v1"),
    ],
)
def test_objects_have_the_version_that_the_cluster_knows(
    version: str, autoscaling: str, disruption: str
) -> None:
    objects = {each["kind"]: each["apiVersion"] for each in rendered(version=version)}
    assert objects["HorizontalPodAutoscaler"] == autoscaling
    assert objects["PodDisruptionBudget"] == disruption


def test_the_chart_has_the_version_of_the_product() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    text = (CHART / "Chart.yaml").read_text()
    assert f"appVersion: {version[1]}\n" in text
    assert {container_of(pod)["image"] for pod in pods().values()} == {f"codehub-control-plane:{version[1]}"}


@pytest.mark.parametrize(("values", "part"), BOTH)
def test_every_process_accepts_its_settings(values: str, part: str) -> None:
    environment = environment_of(pods(values)[part])
    assert unknown_variables(environment) == {}
    known = {variable.name for variable in VARIABLES}
    assert environment.keys() - known == {"HOME"}
    settings = load_settings(environment)
    if part != "migrate":
        assert settings.workspaces.instance_backend == "k8s"
        assert settings.workspaces.storage_backend == "pvc"


def test_values_reach_the_settings() -> None:
    settings = load_settings(environment_of(pods("everything")["proxy"]))
    assert settings.limits.max_running_global == 500
    assert settings.proxy.trusted_proxies == "10.244.0.0/16"
    assert settings.temporal.uses_tls
    assert settings.workspaces.allowed_images == "registry.example.org/acme/*"
    cluster = load_settings(environment_of(pods("everything")["worker"])).kubernetes
    assert (cluster.namespace, cluster.project) == ("homes", "codehub")
    assert (cluster.storage_class, cluster.access_mode) == ("fast", "ReadWriteOncePod")
    assert cluster.job_image == "registry.example.org/codehub/codehub-storage-job:1.2.3"
    assert cluster.node_selector == {"pool": "workspaces"}
    assert cluster.tolerations == ({"key": "workspaces", "operator": "Exists"},)
    assert (cluster.runtime_class, cluster.priority_class) == ("gvisor", "low")
    assert cluster.image_pull_secrets == ("registry",)
    assert cluster.image_labels == {"registry.example.org/acme/lab": {"codehub.io/port": "8888"}}
    gateway = load_settings(environment_of(pods("everything")["egress"])).egress
    assert gateway.refused_networks == "10.244.0.0/16,fd00:10:244::/56,10.96.0.0/12,203.0.113.0/24"
    assert gateway.names == ("github.com", "*.githubusercontent.com")


def test_the_proxy_finds_the_api_by_name_or_by_its_fixed_address() -> None:
    assert load_settings(environment_of(pods()["proxy"])).proxy.api_url == "http://codehub-api.codehub:8081"
    fixed = load_settings(environment_of(pods("everything")["proxy"])).proxy.api_url
    assert fixed == "http://10.96.0.78:8081"
    assert of_kind("Service", "everything")["codehub-api"]["spec"]["clusterIP"] == "10.96.0.78"


@pytest.mark.parametrize(
    ("values", "address"), [("minimal", "codehub-egress.codehub:3128"), ("everything", "10.96.0.77:3128")]
)
@pytest.mark.parametrize("part", ["api", "worker"])
def test_workspaces_have_no_way_out_but_the_gateway(values: str, address: str, part: str) -> None:
    settings = load_settings(environment_of(pods(values)[part]))
    assert is_enforced(settings)
    options = kubernetes_options_of(settings)
    assert options.egress
    assert options.egress.address == address


def test_the_marker_is_the_one_that_parts_may_read() -> None:
    options = kubernetes_options_of(load_settings(environment_of(pods()["proxy"])))
    rules = of_kind("Role")["codehub-proxy"]["rules"]
    (named,) = [rule["resourceNames"] for rule in rules if rule["resources"] == ["configmaps"]]
    assert named == [options.marker_name]


def test_each_part_gets_only_the_secrets_that_it_uses() -> None:
    common = {"CODEHUB_DATABASE_URL", "CODEHUB_REDIS_URL"}
    temporal, s3 = {"CODEHUB_TEMPORAL_API_KEY"}, {"CODEHUB_S3_ACCESS_KEY", "CODEHUB_S3_SECRET_KEY"}
    assert {part: secrets_of(pod) for part, pod in pods("everything").items()} == {
        "migrate": {"CODEHUB_DATABASE_URL"},
        "proxy": common | temporal,
        "egress": common | {"CODEHUB_EGRESS_KEY"},
        "worker": common | temporal | s3 | {"CODEHUB_EGRESS_KEY"},
        "api": common | temporal | s3 | {"CODEHUB_EGRESS_KEY", "CODEHUB_OIDC_CLIENT_SECRET"},
    }


@pytest.mark.parametrize("values", VALUE_SETS)
def test_no_object_contains_a_secret(values: str) -> None:
    assert [each for each in rendered(values) if each["kind"] == "Secret"] == []
    for pod in pods(values).values():
        plain = {each["name"]: each.get("value") for each in container_of(pod)["env"]}
        # The gateway must know where S3 is, and has no keys to it.
        assert {
            name: plain.get(name) for name in SECRET_SETTINGS if plain.get(name) not in {None, "none"}
        } == {}


SECRET_SETTINGS = {
    variable.name
    for variable in VARIABLES
    if "never printed" in variable.allowed or SecretUrl in variable.parts
} | {"CODEHUB_S3_ACCESS_KEY"}


@pytest.mark.parametrize("name", sorted(SECRET_SETTINGS))
def test_a_secret_among_the_settings_is_refused(name: str) -> None:
    sentence = refusal("--set-string", f"settings.{name}=x")
    assert sentence == f"settings.{name} is a secret: put it into a Secret and refer to it; see values.yaml"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("publicUrl=", "publicUrl is not set: set it to"),
        ("publicUrl=codehub.example.org", "publicUrl: Does not match pattern"),
        ("workspacesDomain=", "workspacesDomain is not set: set it to"),
        ("temporal.address=", "temporal.address is not set: set it to"),
        ("temporal.address=temporal", "temporal.address: Does not match pattern"),
        ("s3.endpointUrl=", "s3.endpointUrl is not set: set it to"),
        ("network.pods=null", "network.pods is not set: set it to"),
        ("network.pods={pods}", "network.pods.0: Does not match pattern"),
        ("images.tag=latest", "images.tag is latest: set it to a version"),
        ("workspaces.namespace.name=codehub", "workspaces.namespace.name is the namespace of the release"),
        ("workspaces.namespace.podSecurity=none", "workspaces.namespace.podSecurity must be one of"),
        ("egress.names={github.com}", "egress.names needs egress.mode allow-list"),
        ("egress.mode=closed", "egress.mode must be one of"),
        ("gateway.enabled=true", "gateway.parentRefs is not set: name the Gateway"),
        ("oidc.issuer=https://login.example.org", "oidc.issuer and oidc.clientId belong together"),
        ("settings.CODEHUB_PROXY_PORT=1", "settings.CODEHUB_PROXY_PORT: Invalid type"),
        ("settings.PATH=/bin", "settings: Does not match pattern '^(CODEHUB|TTL)_"),
        ("proxy.drainSecond=1", "proxy: Additional property drainSecond is not allowed"),
        ("proxy.replicas=0", "proxy.replicas: Must be greater than or equal to 1"),
        ("database.urlSecret.name=", "database.urlSecret.name: Does not match pattern"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(given: str, sentence: str) -> None:
    assert sentence in refusal("--set", given)


def test_a_setting_that_the_chart_derives_is_refused() -> None:
    sentence = refusal("--set-string", "settings.CODEHUB_PROXY_PORT=1")
    assert sentence == "settings.CODEHUB_PROXY_PORT: the chart sets it from another value; see values.yaml"


def test_every_value_has_a_schema_and_every_schema_a_default() -> None:
    assert set(_paths(defaults(), schema())) == set(_schema_paths(schema())) - {"global"}


def test_every_group_of_values_refuses_unknown_names() -> None:
    groups = [schema(), *(each for each in schema()["definitions"].values() if "properties" in each)]
    assert [group for group in groups if group["additionalProperties"] is not False] == []


def test_an_ingress_and_a_route_lead_both_hosts_to_the_proxy() -> None:
    (ingress,) = of_kind("Ingress", "everything").values()
    rules = {rule["host"]: rule["http"]["paths"] for rule in ingress["spec"]["rules"]}
    service = {"name": "codehub-proxy", "port": {"name": "http"}}
    everything = [{"path": "/", "pathType": "Prefix", "backend": {"service": service}}]
    assert rules == {"codehub.example.org": everything, "*.codehub-workspaces.example": everything}
    assert {host for each in ingress["spec"]["tls"] for host in each["hosts"]} == set(rules)
    (route,) = of_kind("HTTPRoute", "everything").values()
    assert set(route["spec"]["hostnames"]) == set(rules)
    assert route["spec"]["rules"][0]["backendRefs"] == [{"name": "codehub-proxy", "port": 8080}]
    assert route["spec"]["rules"][0]["timeouts"] == {"request": "0s"}


def test_the_monitoring_is_that_of_the_compose_deployment() -> None:
    (rules,) = of_kind("PrometheusRule", "everything").values()
    assert "{{ $labels.job }}" in " ".join(texts(rules))
    dashboard = of_kind("ConfigMap", "everything")["codehub-dashboard"]
    monitoring = ROOT / "monitoring"
    assert dashboard["data"]["codehub.json"] == (monitoring / "grafana/dashboards/codehub.json").read_text()
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_prometheus_finds_every_part_under_the_name_of_its_job() -> None:
    (monitor,) = of_kind("ServiceMonitor", "everything").values()
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    services = of_kind("Service", "everything").values()
    found = [each for each in services if wanted <= each["metadata"]["labels"].items()]
    jobs = {each["metadata"]["labels"][monitor["spec"]["jobLabel"]]: each["spec"]["ports"] for each in found}
    assert {job: [port["port"] for port in ports] for job, ports in jobs.items()} == {
        "api": [8081],
        "proxy": [9101],
        "worker": [9111],
    }
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} == {
        port["name"] for ports in jobs.values() for port in ports
    }


def test_monitoring_and_ways_in_are_off_by_default() -> None:
    kinds = {each["kind"] for each in rendered("minimal")}
    assert kinds & (EXTENSIONS | {"Ingress", "ConfigMap"}) == set()


def test_notes_say_how_to_add_an_administrator() -> None:
    assert "user add admin --admin" in (CHART / "templates/NOTES.txt").read_text()
    assert template().returncode == 0


def _paths(values: object, described: Described, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all values, down to where the schema stops describing single ones."""
    properties = _resolve(described).get("properties")
    if not properties or not isinstance(values, dict):
        yield prefix
        return
    for name, value in values.items():
        yield from _paths(value, properties.get(name, {}), f"{prefix}.{name}" if prefix else name)


def _schema_paths(described: Described, prefix: str = "") -> Iterator[str]:
    properties = _resolve(described).get("properties")
    if not properties:
        yield prefix
        return
    for name, each in properties.items():
        yield from _schema_paths(each, f"{prefix}.{name}" if prefix else name)


def _resolve(described: Described) -> Described:
    reference = described.get("$ref", "").rpartition("/")[2]
    return schema()["definitions"][reference] if reference else described
