"""Policies: by name, within seconds, for open connections, and during an outage."""

import asyncio

import pytest

from codehub.domain.egress import EgressMode, EgressPolicy, Verdict, parse_policy
from testkit import postgres
from testkit.internet import SILENT_PORT, VICTIM_PORT, WEB_PORT, Internet
from testkit.waiting import until
from tests.egress.clients import Client, Stream, choose, limit, open_tunnel, read_log
from tests.egress.conftest import RunningGateway, running_gateway

SITE, OTHER = (f"{name}.example:{WEB_PORT}" for name in ("site", "other"))
NOTHING = EgressPolicy(EgressMode.NONE)
ONLY_SITE = parse_policy(EgressMode.ALLOW_LIST, ["site.example"])


async def reaches(client: Client, authority: str) -> bool:
    try:
        return b"outside" in await client.connect_and_get(authority)
    except ConnectionResetError:
        # The gateway cuts connections that a new policy forbids.
        return False


async def test_an_owner_tightens_and_loosens_again_within_seconds(gateway: RunningGateway) -> None:
    client = await gateway.client()
    assert await reaches(client, SITE)
    await choose(gateway.database, client.workspace_id, ONLY_SITE)

    async def is_in_force() -> bool:
        return not await reaches(client, OTHER)

    await until(is_in_force, "the policy is in force")
    assert await reaches(client, SITE)
    assert b"does not allow it" in await client.connect_and_get(OTHER)
    assert b"403" in await client.connect_and_get(f"198.51.100.2:{WEB_PORT}")
    await choose(gateway.database, client.workspace_id, None)

    async def is_lifted() -> bool:
        return await reaches(client, OTHER)

    await until(is_lifted, "the policy is lifted")


async def test_a_workspace_without_a_way_out_reaches_nothing(gateway: RunningGateway) -> None:
    client, other = await gateway.client(), await gateway.client()
    await choose(gateway.database, client.workspace_id, NOTHING)
    assert not await reaches(client, SITE)
    assert not await reaches(client, f"198.51.100.2:{WEB_PORT}")
    assert await reaches(other, SITE)


async def test_an_owner_cannot_loosen_what_an_administrator_set(gateway: RunningGateway) -> None:
    client = await gateway.client()
    await limit(gateway.database, client.workspace_id, ONLY_SITE)
    await choose(gateway.database, client.workspace_id, EgressPolicy(EgressMode.OPEN))
    assert await reaches(client, SITE)
    assert not await reaches(client, OTHER)


async def ended(stream: Stream) -> bool:
    try:
        return not await stream[0].read(1)
    except ConnectionError:
        return True


async def test_open_connections_to_a_name_that_becomes_forbidden_are_cut(gateway: RunningGateway) -> None:
    client, other = await gateway.client(), await gateway.client()
    async with client.connect() as kept, client.connect() as cut, other.connect() as unaffected:
        assert b" 200 " in await open_tunnel(kept, f"site.example:{SILENT_PORT}")
        assert b" 200 " in await open_tunnel(cut, f"other.example:{SILENT_PORT}")
        assert b" 200 " in await open_tunnel(unaffected, f"other.example:{SILENT_PORT}")
        await choose(gateway.database, client.workspace_id, ONLY_SITE)
        still_open = [asyncio.create_task(ended(stream)) for stream in (kept, unaffected)]
        assert await ended(cut)
        assert not any(task.done() for task in still_open)
        for task in still_open:
            task.cancel()


async def test_without_the_database_known_policies_stay_and_unknown_workspaces_are_refused(
    internet: Internet, database_url: str, postgres_server: postgres.Server
) -> None:
    async with running_gateway(internet, database_url) as gateway:
        known, restricted, unknown = [await gateway.client() for _ in range(3)]
        await choose(gateway.database, restricted.workspace_id, ONLY_SITE)
        assert await reaches(known, SITE)
        assert await reaches(restricted, SITE)
        async with postgres.outage(postgres_server, database_url):

            async def noticed() -> bool:
                return "those in the cache stay in force" in gateway.log.read_text()

            await until(noticed, "the gateway could not read the policies")
            assert await reaches(known, OTHER)
            assert await reaches(restricted, SITE)
            assert not await reaches(restricted, OTHER)
            assert b"503" in await unknown.connect_and_get(SITE)

        async def recovered() -> bool:
            return await reaches(unknown, SITE)

        await until(recovered, "the policies can be read again")


@pytest.mark.parametrize(
    ("settings", "choice", "site", "other"),
    [
        ({"mode": "allow-list", "names": "site.example"}, None, True, False),
        ({"mode": "allow-list", "names": "site.example"}, EgressPolicy(EgressMode.OPEN), True, False),
        (
            {"mode": "allow-list", "names": "site.example", "owners_may_loosen": "true"},
            EgressPolicy(EgressMode.OPEN),
            True,
            True,
        ),
        ({"refused_networks": "198.51.100.3/32"}, None, True, False),
    ],
)
async def test_the_operator_sets_the_default(
    internet: Internet,
    shared_database_url: str,
    settings: dict[str, str],
    choice: EgressPolicy | None,
    site: bool,
    other: bool,
) -> None:
    async with running_gateway(internet, shared_database_url, **settings) as gateway:
        client = await gateway.client()
        await choose(gateway.database, client.workspace_id, choice)
        assert (await reaches(client, SITE), await reaches(client, OTHER)) == (site, other)


async def test_allowed_and_refused_names_are_logged_for_their_workspace_only(gateway: RunningGateway) -> None:
    client, other = await gateway.client(), await gateway.client()
    for _ in range(3):
        assert await reaches(client, SITE)
    assert not await reaches(client, f"metadata.example:{VICTIM_PORT}")
    assert not await reaches(client, f"127.0.0.1:{VICTIM_PORT}")

    async def is_stored() -> bool:
        return sum(entry.count for entry in await read_log(gateway.database, client.workspace_id)) == 5

    await until(is_stored, "the log is stored")
    entries = await read_log(gateway.database, client.workspace_id)
    assert {(entry.name, entry.port, entry.verdict, entry.count) for entry in entries} == {
        ("site.example", WEB_PORT, Verdict.ALLOWED, 3),
        ("metadata.example", VICTIM_PORT, Verdict.REFUSED, 1),
        ("127.0.0.1", VICTIM_PORT, Verdict.REFUSED, 1),
    }
    assert [entry.verdict for entry in entries] == sorted((e.verdict for e in entries), reverse=True)
    assert await read_log(gateway.database, other.workspace_id) == []
