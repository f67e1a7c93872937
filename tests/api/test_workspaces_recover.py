"""Leaving an error over the API: the choices are told, and what is chosen happens."""

from codehub.domain.states import ErrorReason
from tests.api.behind import (
    fail,
    lose_data,
)
from tests.api.bench import ApiBench
from tests.api.workspace_requests import bench, error_of, settled, world
from tests.fake_world import FakeWorld
from tests.waiting import until

__all__ = ["bench", "world"]


async def test_for_lost_files_the_choices_are_told(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    await lose_data(bench.context.database, workspace_id)
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert (problem["phase"], problem["choices"]) == ("ERROR", ["retry", "start_empty"])
    answer = await ada.client.post(path, json={"choice": "restore_archive"})
    assert (await error_of(answer, 409, "INVALID_STATE"))["choices"] == ["retry", "start_empty"]
    await lose_data(bench.context.database, workspace_id, archive_key="archives/a/b/home.tar.zst")
    problem = await error_of(await ada.client.post(path, json={}), 409, "INVALID_STATE")
    assert problem["choices"] == ["retry", "restore_archive", "start_empty"]
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["error"]
    assert shown["recover_choices"] == problem["choices"]
    answer = await ada.client.post(path, json={"choice": "start_empty"})
    assert (answer.status_code, answer.json()["recovering"]) == (202, True)


async def test_other_errors_are_left_without_a_choice(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert problem["message"] == "There is no error to recover from."
    assert "choices" not in problem
    await fail(bench.context.database, workspace_id, ErrorReason.TIMEOUT)
    answer = await ada.client.post(path)
    assert (answer.status_code, answer.json()["recovering"]) == (202, True)


async def test_a_recovered_workspace_goes_on(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create(image_ref="nowhere", desired_state="RUNNING")

    async def broke() -> bool:
        return bool((await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()["phase"] == "ERROR")

    await until(broke, "the image cannot be pulled")
    world.images.add("nowhere")
    assert (await ada.client.post(f"{ada.workspaces}/{created['id']}/recover")).status_code == 202
    assert (await settled(bench, ada, created["id"]))["error"] is None
