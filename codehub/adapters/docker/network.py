"""The network of the workspaces: it reaches the internet, but not other workspaces."""

from http import HTTPStatus

from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import ignore_statuses
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

# Without this, every workspace could open the IDEs of the others, which ask for no password.
ISOLATED = {"com.docker.network.bridge.enable_icc": "false"}


async def ensure_network(engine: Docker, name: str) -> str:
    """Return the id of the network; create it if necessary. A recreated network has another id."""
    network_id = await find_network(engine, name)
    while network_id is None:
        # CONFLICT: another process created it first.
        with ignore_statuses(HTTPStatus.CONFLICT):
            await engine.networks.create(
                {"Name": name, "Driver": "bridge", "CheckDuplicate": True, "Options": ISOLATED}
            )
        network_id = await find_network(engine, name)
    return network_id


async def find_network(engine: Docker, name: str) -> str | None:
    """Return the id of the network, or None. Raise Transient if it does not isolate workspaces."""
    try:
        network = await (await engine.networks.get(name)).show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    if any(network["Options"].get(option) != value for option, value in ISOLATED.items()):
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"The network {name} lets workspaces reach each other; remove it, and CodeHub creates it again.",
        )
    return str(network["Id"])
