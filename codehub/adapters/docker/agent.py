"""The options of the agent inside a container."""

from collections.abc import Mapping

from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.sockets import IDE_SOCKET, PORTS_SOCKET, SOCKETS
from codehub.domain.conditions import WorkspaceId
from codehub.image_traits import ImageTraits
from codehub.instance_ports import RESERVED_PORTS, forwarder_options

# See workspace_agent/options.py.
AGENT_VARIABLE = "CODEHUB_AGENT"


def agent_options(
    workspace_id: WorkspaceId, traits: ImageTraits, options: DockerOptions, secret: str
) -> Mapping[str, object]:
    """Return the agent's options, or nothing if it only runs the IDE."""
    published = options.publish_ports
    services = {}
    if options.egress:
        # The relay authenticates the workspace to the gateway.
        services["egress"] = options.egress.relay_options(workspace_id)
    if traits.agent_port is not None:
        at_socket, at_port = {"sockets": SOCKETS, "name": PORTS_SOCKET}, {"port": str(traits.agent_port)}
        reserved = reserved_ports(traits, published=published)
        services["ports"] = forwarder_options(at_port if published else at_socket, reserved, secret=secret)
    if published:
        return {"services": services} if services else {}
    return {"sockets": SOCKETS, "ide_socket": IDE_SOCKET, "services": services}


def reserved_ports(traits: ImageTraits, *, published: bool) -> frozenset[int]:
    """Return CodeHub's own ports in the container; IDE and agent have ports only if they are published."""
    own = {traits.port, traits.agent_port} if published else set()
    return RESERVED_PORTS | {each for each in own if each is not None}
