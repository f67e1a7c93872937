"""Administrators bound idle times and images; a request beyond the bounds is refused in one sentence."""

from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from api.app import create_app
from api.context import Context
from codehub.domain.images import AllowedImages
from codehub.domain.limits import IdleTimes
from codehub.services.workspace_rules import WorkspaceRules
from tests.api.harness import ORIGIN, ApiHarness, Person
from tests.api.workspace_rows import set_columns

RULES = WorkspaceRules(
    AllowedImages(("default", "registry.example/acme/*")),
    IdleTimes(standby=timedelta(hours=2), archive=timedelta(days=2)),
)


@pytest.fixture
async def ada(harness: ApiHarness) -> Person:
    return await harness.with_cheap_passwords().person()


def bounded(context: Context, person: Person) -> httpx.AsyncClient:
    """Return a client of the same API with bounds."""
    transport = httpx.ASGITransport(app=create_app(replace(context, rules=RULES)))
    client = person.client
    return httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, headers=client.headers, cookies=client.cookies
    )


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"standby_ttl_seconds": 7201}, "`standby_ttl_seconds` may be at most 7200 seconds; "),
        ({"archive_ttl_seconds": 172_801}, "`archive_ttl_seconds` may be at most 172800 seconds; "),
        (
            {"image_ref": "evil.example/miner"},
            "choose one of default, registry.example/acme/*, or ask",
        ),
    ],
)
async def test_what_administrators_do_not_allow_is_refused(
    harness: ApiHarness, ada: Person, form: dict[str, object], sentence: str
) -> None:
    async with bounded(harness.context, ada) as client:
        refused = await client.post(
            "/api/v1/workspaces", json={"name": "x", "desired_state": "STANDBY", **form}
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")
        assert sentence in refused.json()["error"]["message"]
        if "image_ref" not in form:
            workspace_id = (await ada.create(desired_state="STANDBY"))["id"]
            refused = await client.patch(f"/api/v1/workspaces/{workspace_id}", json=form)
            assert refused.status_code == 400
            assert sentence in refused.json()["error"]["message"]


async def test_what_administrators_allow_is_accepted_up_to_the_bound(
    harness: ApiHarness, ada: Person
) -> None:
    async with bounded(harness.context, ada) as client:
        form = {
            "standby_ttl_seconds": 7200,
            "archive_ttl_seconds": 172_800,
            "image_ref": "registry.example/acme/ide:1",
        }
        created = await client.post(
            "/api/v1/workspaces", json={"name": "x", "desired_state": "STANDBY", **form}
        )
        assert created.status_code == 201


async def test_a_longer_time_from_before_counts_as_the_bound_and_is_shown_so(
    harness: ApiHarness, ada: Person
) -> None:
    workspace_id = (await ada.create(desired_state="STANDBY"))["id"]
    await set_columns(harness.context.database, workspace_id, standby_ttl_seconds=86_400)
    async with bounded(harness.context, ada) as client:
        shown = (await client.get(f"/api/v1/workspaces/{workspace_id}")).json()
    assert (shown["standby_ttl_seconds"], shown["effective_standby_ttl_seconds"]) == (86_400, 7200)
