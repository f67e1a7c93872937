"""The network of the workspaces: out to the world, but not to each other."""

from http import HTTPStatus

from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import tolerating
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

# Without it, an IDE that asks for no password is open to every neighbour.
APART = {"com.docker.network.bridge.enable_icc": "false"}


async def ensure_network(engine: Docker, name: str) -> str:
    """Its id, which is another one whenever it has been made anew."""
    network_id = await find_network(engine, name)
    while network_id is None:
        # Somebody else may have been quicker.
        with tolerating(HTTPStatus.CONFLICT):
            await engine.networks.create(
                {"Name": name, "Driver": "bridge", "CheckDuplicate": True, "Options": APART}
            )
        network_id = await find_network(engine, name)
    return network_id


async def find_network(engine: Docker, name: str) -> str | None:
    """Its id, if it is there."""
    try:
        network = await (await engine.networks.get(name)).show()
    except DockerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    if any(network["Options"].get(option) != value for option, value in APART.items()):
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"The network {name} lets workspaces reach each other; remove it, and it is made anew.",
        )
    return str(network["Id"])
