"""The audit log in the API: pages, filters, export."""

import json

from tests.api.harness import PASSWORD, ApiHarness

AUDIT = "/api/v1/admin/audit"


async def test_pages_end_and_overlap_nowhere(harness: ApiHarness) -> None:
    admin = await harness.person(admin=True)
    for _ in range(4):
        await harness.sign_in(admin.client, admin.username)
    seen: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        query: dict[str, str | int] = {"actor": admin.username, "limit": 2, **cursor}
        page = (await admin.client.get(AUDIT, params=query)).json()
        seen += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == 5
    assert seen == sorted(set(seen), reverse=True)


async def test_the_export_has_every_entry_as_a_json_line(harness: ApiHarness) -> None:
    admin = await harness.person(admin=True)
    name = f"new-{admin.username}"
    created = await admin.client.post("/api/v1/admin/users", json={"username": name, "password": PASSWORD})
    assert created.status_code == 201
    response = await admin.client.get(f"{AUDIT}/export", params={"actor": admin.username})
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [each["action"] for each in lines] == ["user_add", "sign_in"]
    assert lines[0]["target"] == name
    assert lines[0]["address"] == "127.0.0.1"


async def test_a_time_that_does_not_exist_in_utc_is_refused(harness: ApiHarness) -> None:
    admin = await harness.person(admin=True)
    response = await admin.client.get(AUDIT, params={"since": "0001-01-01T00:00:00+10:00"})
    assert response.status_code == 400
