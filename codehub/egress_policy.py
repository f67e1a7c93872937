"""The network policy of the installation, from the settings."""

from codehub.domain.egress import EgressPolicy
from codehub.settings import Settings


def installation_policy(settings: Settings) -> EgressPolicy:
    return EgressPolicy(settings.egress.mode, frozenset(settings.egress.names))


def is_enforced(settings: Settings) -> bool:
    """Return whether workspaces reach the outside only through the gateway."""
    if settings.workspaces.instance_backend == "local":
        return not settings.local.unsafe_no_sandbox
    if settings.workspaces.instance_backend == "k8s":
        # NetworkPolicies, which the chart installs, block everything else.
        return settings.kubernetes.egress_address is not None
    return settings.docker.egress == "gateway"
