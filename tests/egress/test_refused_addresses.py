"""No spelling and no name reaches the gateway's own machine, its networks or a cloud's metadata.

The victim answers on every one of these addresses: each attack is tried without the gateway first.
"""

import pytest

from testkit.internet import VICTIM_ADDRESSES, VICTIM_PORT, WEB_PORT, Internet
from tests.egress.conftest import RunningGateway

LOOPBACK = ("127.0.0.1", "127.1.2.3", "::1")
ADDRESSES = (*LOOPBACK, *(each.partition("/")[0] for each in VICTIM_ADDRESSES))
# Other spellings that some resolver or library takes for 127.0.0.1 or an address of the machine.
SPELLINGS = (
    "localhost",
    "localhost.",
    "LOCALHOST",
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",  # noqa: S104
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.0.0.1.",
    "127.0.0.01",
    "\uff11\uff12\uff17.0.0.1",
    "169.254.43518",
    "2852039166",
    "10.591879",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[::1%25lo]",
    "[fe80::1%lo]",
)
NAMES = (
    "local.example",
    "local-six.example",
    "mapped.example",
    "nat64.example",
    "metadata.example",
    "private.example",
    "machine.example",
)


def _authority(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


@pytest.mark.parametrize("address", ADDRESSES)
async def test_the_victim_answers_without_the_gateway_and_not_through_it(
    internet: Internet, gateway: RunningGateway, address: str
) -> None:
    assert internet.fetch_directly(address, VICTIM_PORT).startswith("victim")
    client = await gateway.client()
    authority = f"{_authority(address)}:{VICTIM_PORT}"
    responses = (
        await client.connect_and_get(authority),
        await client.get(f"http://{authority}/"),
        await client.socks_get(address, VICTIM_PORT),
    )
    assert not any(b"victim" in response for response in responses)
    assert [b"403" in responses[0], b"403" in responses[1], responses[2][1]] == [True, True, 2]


@pytest.mark.parametrize("host", [*SPELLINGS, *NAMES])
async def test_no_other_spelling_or_name_reaches_it(gateway: RunningGateway, host: str) -> None:
    client = await gateway.client()
    responses = (
        await client.connect_and_get(f"{host}:{VICTIM_PORT}"),
        await client.get(f"http://{host}:{VICTIM_PORT}/"),
        await client.socks_get(host.encode(), VICTIM_PORT),
        await client.socks_get(host.strip("[]").encode(), VICTIM_PORT),
    )
    assert not any(b"victim" in response or b" 200 " in response for response in responses)


async def test_a_name_with_a_public_and_a_local_address_is_refused(gateway: RunningGateway) -> None:
    client = await gateway.client()
    assert b"403" in await client.connect_and_get(f"mixed.example:{WEB_PORT}")


async def test_a_name_that_changes_its_address_does_not_lead_inside(
    internet: Internet, gateway: RunningGateway
) -> None:
    """The first lookup is public, every later one loopback: the connection uses the checked address."""
    client = await gateway.client()
    first = await client.connect_and_get(f"rebind.example:{WEB_PORT}")
    assert b"outside 198.51.100.2" in first
    assert internet.fetch_directly("rebind.example", VICTIM_PORT).startswith("victim")
    assert b"403" in await client.connect_and_get(f"rebind.example:{VICTIM_PORT}")


async def test_the_refusal_says_why(gateway: RunningGateway) -> None:
    client = await gateway.client()
    response = await client.get("http://169.254.169.254/latest/meta-data/")
    assert b"private, local or reserved address, which workspaces never reach" in response
