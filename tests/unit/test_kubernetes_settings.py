"""The settings of the Kubernetes backend become its options, and wrong ones are explained."""

from pathlib import Path

import pytest

from codehub.adapters.kubernetes.options import OWN_IMAGE, Egress
from codehub.adapters.kubernetes.removal import CLEANUP_SECONDS
from codehub.domain.failures import MAX_RETRY
from codehub.egress_policy import is_enforced
from codehub.providers import kubernetes_options_of, open_providers
from codehub.settings import SettingsError, load_settings

BACKEND = {"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "k8s"}


def test_the_defaults_are_those_of_the_adapter() -> None:
    options = kubernetes_options_of(load_settings(BACKEND))
    assert options.traits_of("default") == OWN_IMAGE
    assert options.claims.storage_class is None
    assert options.placement.tolerations == ()
    assert options.egress is None


@pytest.mark.parametrize("force_seconds", [10, 300, 1200])
def test_the_last_attempt_to_stop_outlasts_the_time_until_a_removal_by_force(force_seconds: int) -> None:
    settings = load_settings({**BACKEND, "CODEHUB_KUBERNETES_FORCE_SECONDS": str(force_seconds)})
    timeouts = kubernetes_options_of(settings).timeouts
    assert MAX_RETRY * (timeouts.removal - CLEANUP_SECONDS) >= timeouts.force


def test_lists_and_maps_are_json() -> None:
    settings = load_settings(
        {
            **BACKEND,
            "CODEHUB_KUBERNETES_NODE_SELECTOR": '{"disk": "ssd"}',
            "CODEHUB_KUBERNETES_TOLERATIONS": '[{"key": "workspaces", "operator": "Exists"}]',
            "CODEHUB_KUBERNETES_IMAGE_LABELS": '{"registry.example/ide": {"codehub.io/port": "8888"}}',
            "CODEHUB_KUBERNETES_IMAGE_PULL_SECRETS": "one, two",
        }
    )
    options = kubernetes_options_of(settings)
    assert options.placement.node_selector == {"disk": "ssd"}
    assert options.placement.tolerations == ({"key": "workspaces", "operator": "Exists"},)
    assert options.placement.image_pull_secrets == ("one", "two")
    assert options.traits_of("registry.example/ide:3").port == 8888


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NODE_SELECTOR", "disk=ssd"),
        ("NODE_SELECTOR", "[1]"),
        ("TOLERATIONS", '{"key": "workspaces"}'),
        ("PROJECT", "My_Project"),
    ],
)
def test_a_wrong_value_is_explained(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"CODEHUB_KUBERNETES_{variable}=.*: must be a"):
        load_settings({**BACKEND, f"CODEHUB_KUBERNETES_{variable}": value})


def test_the_gateway_needs_its_key() -> None:
    address = {**BACKEND, "CODEHUB_KUBERNETES_EGRESS_ADDRESS": "10.96.0.7:3128"}
    with pytest.raises(SettingsError, match="CODEHUB_EGRESS_KEY is not set"):
        kubernetes_options_of(load_settings(address))
    settings = load_settings({**address, "CODEHUB_EGRESS_KEY": "key"})
    assert kubernetes_options_of(settings).egress == Egress("10.96.0.7:3128", "key")
    assert is_enforced(settings)
    assert not is_enforced(load_settings(BACKEND))


async def test_a_process_that_cannot_know_its_cluster_says_so(tmp_path: Path) -> None:
    missing = {**BACKEND, "CODEHUB_KUBERNETES_KUBECONFIG": str(tmp_path / "missing")}
    with pytest.raises(SettingsError, match="CODEHUB_KUBERNETES_KUBECONFIG"):
        async with open_providers(load_settings(missing)):
            pass
