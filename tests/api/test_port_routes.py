"""Ports over the API: owners see what listens, share it and stop; others and administrators cannot share."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import update

from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Audience, PortShare, Sharing, SharingRules, serialize
from codehub.origins import OriginMode
from codehub.ports import ListeningPort, PortUnavailable
from testkit.fake_world import FakeInstance, FakeWorld
from testkit.fakes import FakeInstances
from tests.api.harness import ApiHarness, Person

HOUR = timedelta(hours=1)


@pytest.fixture
def world() -> FakeWorld:
    return FakeWorld()


@pytest.fixture
def harness(shared_harness: ApiHarness, world: FakeWorld) -> ApiHarness:
    fake = shared_harness.with_fake_instances(world)
    return allow(fake, SharingRules(Sharing.PUBLIC))


def allow(harness: ApiHarness, rules: SharingRules) -> ApiHarness:
    return replace(harness, context=replace(harness.context, sharing=rules))


def path_of(workspace_id: str, port: object = None) -> str:
    path = f"/api/v1/workspaces/{workspace_id}/ports"
    return path if port is None else f"{path}/{port}/share"


async def share(person: Person, workspace_id: str, port: object = 3000, **form: Any) -> httpx.Response:  # noqa: ANN401
    return await person.client.put(path_of(workspace_id, port), json=form)


async def ports(client: httpx.AsyncClient, workspace_id: str) -> dict[str, Any]:
    response = await client.get(path_of(workspace_id))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def lifetime_of(shared: dict[str, Any]) -> timedelta:
    return datetime.fromisoformat(shared["expires_at"]) - datetime.fromisoformat(shared["created_at"])


async def test_listening_and_shared_ports_are_listed_with_their_address(
    harness: ApiHarness, world: FakeWorld
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    world.instances[WorkspaceId(workspace_id)] = FakeInstance("image", ports={5173: "node", 8000: "python3"})
    assert (await share(ada, workspace_id, 8000, audience="public")).status_code == 200
    assert (await share(ada, workspace_id, 3000)).status_code == 200
    found = await ports(ada.client, workspace_id)
    assert [
        (each["port"], each["process"], each["listening"], each["share"] and each["share"]["audience"])
        for each in found["items"]
    ] == [(3000, None, False, "users"), (5173, "node", True, None), (8000, "python3", True, "public")]
    assert found["items"][1]["url"] == f"http://5173--{workspace_id}.localhost:8080/"
    assert (found["sharing"], found["max_share_seconds"], found["unavailable"]) == ("public", None, None)


async def test_a_share_lasts_eight_hours_unless_its_owner_says_otherwise(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    assert lifetime_of((await share(ada, workspace_id)).json()) == 8 * HOUR
    assert lifetime_of((await share(ada, workspace_id, expires_in=60)).json()) == timedelta(minutes=1)
    assert (await share(ada, workspace_id, expires_in=None)).json()["expires_at"] is None
    bounded = allow(harness, SharingRules(Sharing.PUBLIC, HOUR))
    owner = Person(ada.user_id, ada.username, bounded.stranger())
    await bounded.sign_in(owner.client, ada.username)
    assert lifetime_of((await share(owner, workspace_id)).json()) == HOUR
    assert (await share(owner, workspace_id, expires_in=None)).status_code == 400
    assert (await share(owner, workspace_id, expires_in=3601)).status_code == 400


async def test_sharing_stops_once_and_may_be_stopped_again(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await share(ada, workspace_id)
    for _ in range(2):
        assert (await ada.client.delete(path_of(workspace_id, 3000))).status_code == 204
    assert (await ports(ada.client, workspace_id))["items"] == []


async def test_an_expired_share_is_not_listed(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    now = datetime.now(UTC)
    expired = serialize({3000: PortShare(Audience.PUBLIC, now - 2 * HOUR, now - HOUR)})
    async with harness.context.database.transaction() as session:
        this_one = update(Workspace).where(Workspace.id == UUID(workspace_id))
        await session.execute(this_one.values(port_shares=expired))
    assert (await ports(ada.client, workspace_id))["items"] == []


@pytest.mark.parametrize("port", [-1, 0, 65536, 3128, "80a", "3000%00", "1e3", 2**64])
async def test_what_is_no_port_cannot_be_shared(harness: ApiHarness, port: object) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    assert (await share(ada, workspace_id, port)).status_code == 400
    assert (await ports(ada.client, workspace_id))["items"] == []


@pytest.mark.parametrize(
    "form",
    [
        {"audience": "friends"},
        {"audience": None},
        {"expires_in": 0},
        {"expires_in": -1},
        {"expires_in": 1e12},
    ],
    ids=str,
)
async def test_what_is_no_share_is_refused(harness: ApiHarness, form: dict[str, Any]) -> None:
    ada = await harness.person()
    response = await share(ada, (await ada.create())["id"], **form)
    assert response.status_code == 400, response.text


@pytest.mark.parametrize(
    ("sharing", "audience", "message"),
    [
        (Sharing.NONE, "users", "Ports cannot be shared here"),
        (Sharing.USERS, "public", "with signed-in users only"),
    ],
)
async def test_administrators_decide_the_widest_audience(
    harness: ApiHarness, sharing: Sharing, audience: str, message: str
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    assert (await share(ada, workspace_id, 4000, audience="public")).status_code == 200
    limited = allow(harness, SharingRules(sharing))
    owner = Person(ada.user_id, ada.username, limited.stranger())
    await limited.sign_in(owner.client, ada.username)
    refused = await share(owner, workspace_id, audience=audience)
    assert (refused.status_code, message in refused.text) == (400, True)
    # What was shared before is limited as well.
    found = (await ports(owner.client, workspace_id))["items"]
    assert [each["share"]["audience"] for each in found] == (["users"] if sharing is Sharing.USERS else [])


async def test_an_administrator_stops_sharing_but_does_not_share(harness: ApiHarness) -> None:
    ada, admin = await harness.person(), await harness.person(admin=True)
    workspace_id = (await ada.create())["id"]
    await share(ada, workspace_id)
    assert (await share(admin, workspace_id, 8000)).status_code == 403
    assert (await admin.client.delete(path_of(workspace_id, 3000))).status_code == 204
    assert (await ports(ada.client, workspace_id))["items"] == []
    entries = (await admin.client.get("/api/v1/admin/audit")).json()["items"]
    found = [(each["action"], each["actor"]) for each in entries if each["target_id"] == workspace_id]
    assert found == [("port_unshare", admin.username), ("port_share", ada.username)]


async def test_a_change_is_a_new_version_of_the_workspace(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await share(ada, created["id"])
    after = (await ada.client.get(f"/api/v1/workspaces/{created['id']}")).json()
    assert after["version"] == created["version"] + 1


class NoAgent(FakeInstances):
    """Instances whose image has no agent."""

    async def list_ports(self, workspace_id: WorkspaceId) -> list[ListeningPort]:  # noqa: ARG002
        raise PortUnavailable("This image has no agent.")


async def test_shares_are_listed_where_ports_cannot_be(harness: ApiHarness, world: FakeWorld) -> None:
    old = replace(harness, context=replace(harness.context, instances=NoAgent(world)))
    ada = await old.person()
    workspace_id = (await ada.create())["id"]
    await share(ada, workspace_id)
    found = await ports(ada.client, workspace_id)
    assert ([each["port"] for each in found["items"]], found["unavailable"]) == (
        [3000],
        "This image has no agent.",
    )


async def test_without_origins_of_their_own_ports_are_refused_in_a_sentence(harness: ApiHarness) -> None:
    origins = replace(harness.context.options.origins, mode=OriginMode.PATH)
    options = replace(harness.context.options, origins=origins)
    shared_origin = replace(harness, context=replace(harness.context, options=options))
    ada = await shared_origin.person()
    workspace_id = (await ada.create())["id"]
    refused = await share(ada, workspace_id)
    assert (refused.status_code, "CODEHUB_WORKSPACES_ORIGINS" in refused.text) == (409, True)
    assert "CODEHUB_WORKSPACES_ORIGINS" in (await ports(ada.client, workspace_id))["unavailable"]
