"""`codehub migrate --import-homes` imports every home of M1 whole, also when it is killed."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from codehub.db.session import connect
from codehub.domain.naming import volume_name
from migrations import runner
from testkit.trees import describe_tree
from testkit.waiting import until
from tests.buckets import Bucket
from tests.codehub_command import up
from tests.m1.deployment import M1Deployment
from tests.m1.leftovers import IDS, STATUSES, WITH_HOMES, home_key
from tests.storage_jobs import restore

pytestmark = pytest.mark.timeout(900)

HEAD = runner.revisions()[-1]
# Random bytes do not compress, so the upload takes a while.
BALLAST_BYTES = 64 * 1024 * 1024


@pytest.fixture
async def deployment(empty_database_url: str, bucket: Bucket, tmp_path: Path) -> M1Deployment:
    return await M1Deployment.create(empty_database_url, bucket, tmp_path)


PHASES_AFTER = {
    "CREATED": ("PENDING", "RUNNING"),
    "PROVISIONING": ("ARCHIVED", "RUNNING"),
    "RUNNING": ("ARCHIVED", "RUNNING"),
    "STOPPING": ("ARCHIVED", "STANDBY"),
    "STOPPED": ("ARCHIVED", "STANDBY"),
    # Deletions that M1 had not finished can be undone for a while, like any other.
    "DELETING": ("DELETED", "DELETED"),
    "ERROR": ("ERROR", "STANDBY"),
    "DELETED": ("DELETED", "DELETED"),
}


async def test_every_home_is_imported_whole_and_the_original_is_unchanged(
    deployment: M1Deployment, tmp_path: Path
) -> None:
    before = deployment.descriptions()
    run = await deployment.import_homes()
    assert run.code == 0, run.output
    assert f"Migrated the database: M1 → {HEAD}." in run.output
    assert "Imported 6 homes; none is left." in run.output
    assert deployment.descriptions() == before
    rows = await deployment.rows()
    assert {name: (row["phase"], row["desired_state"]) for name, row in rows.items()} == PHASES_AFTER
    for status in WITH_HOMES:
        row = rows[status]
        assert (row["instance_backend"], row["storage_backend"]) == ("local", "local-dir")
        assert row["home_store_key"] == volume_name(IDS[status])
        (tmp_path / status).mkdir()
        await restore(deployment.bucket, tmp_path / status, key=row["archive_key"])
        assert describe_tree(tmp_path / status) == before[status]
    assert {row["image_ref"] for row in rows.values() if row["name"] != "deleted"} == {"default"}


async def test_another_run_finds_nothing_to_do(deployment: M1Deployment) -> None:
    await deployment.keep_only("RUNNING", "DELETING")
    await deployment.import_homes()
    rows, keys = await deployment.rows(), await deployment.bucket.keys()
    run = await deployment.import_homes()
    assert (run.code, run.output.splitlines()[0]) == (0, f"The database is already at {HEAD}.")
    assert "Imported 0 homes; none is left." in run.output
    assert (await deployment.rows(), await deployment.bucket.keys()) == (rows, keys)


async def test_an_import_continues_after_a_kill_during_an_upload(deployment: M1Deployment) -> None:
    await deployment.keep_only("RUNNING", "DELETING")
    (deployment.homes["RUNNING"] / "ballast").write_bytes(os.urandom(BALLAST_BYTES))
    before = deployment.descriptions()

    async def uploading() -> bool:
        return bool(await deployment.bucket.unfinished_uploads())

    with deployment.importing() as process:
        await until(uploading, "an upload is under way")
        process.kill()
    run = await deployment.import_homes()
    assert run.code == 0, run.output
    assert deployment.descriptions() == before
    assert (await deployment.rows())["RUNNING"]["phase"] == "ARCHIVED"
    assert await deployment.bucket.unfinished_uploads() == []


async def test_an_import_continues_after_a_kill_at_any_moment(deployment: M1Deployment) -> None:
    """Kill the import whenever an object or a row changes, until it has nothing left to do."""
    before = deployment.descriptions()
    while await _killed_at_the_next_change(deployment):
        pass
    rows = await deployment.rows()
    assert {name: (row["phase"], row["desired_state"]) for name, row in rows.items()} == PHASES_AFTER
    assert deployment.descriptions() == before
    assert len(await deployment.bucket.keys()) == 2 * len(WITH_HOMES)


async def _killed_at_the_next_change(deployment: M1Deployment) -> bool:
    """Return False if the import ended first."""

    async def state() -> object:
        rows = await deployment.rows()
        return await deployment.bucket.keys(), {name: row.get("archive_key") for name, row in rows.items()}

    last = await state()
    with deployment.importing() as process:

        async def changed() -> bool:
            return process.exitcode is not None or await state() != last

        await until(changed, "the import goes on")
        return process.exitcode is None


async def test_an_upload_that_was_not_committed_to_the_database_is_not_repeated(
    deployment: M1Deployment,
) -> None:
    await deployment.keep_only("STOPPED")
    await deployment.import_homes()
    key = (await deployment.rows())["STOPPED"]["archive_key"]
    await _forget_import(deployment, "STOPPED")
    written = await deployment.bucket.client.head_object(Bucket=deployment.bucket.name, Key=key)
    run = await deployment.import_homes()
    assert "Imported 1 home; none is left." in run.output
    assert (await deployment.rows())["STOPPED"]["archive_key"] == key
    again = await deployment.bucket.client.head_object(Bucket=deployment.bucket.name, Key=key)
    assert again["LastModified"] == written["LastModified"]


async def test_an_upload_that_is_older_than_the_home_is_replaced(
    deployment: M1Deployment, tmp_path: Path
) -> None:
    await deployment.keep_only("STOPPED")
    await deployment.import_homes()
    await _forget_import(deployment, "STOPPED")
    (deployment.homes["STOPPED"] / "written since").write_text("new")
    run = await deployment.import_homes()
    assert run.code == 0, run.output
    (tmp_path / "restored").mkdir()
    await restore(
        deployment.bucket, tmp_path / "restored", key=(await deployment.rows())["STOPPED"]["archive_key"]
    )
    assert describe_tree(tmp_path / "restored") == describe_tree(deployment.homes["STOPPED"])


async def _forget_import(deployment: M1Deployment, status: str) -> None:
    """Put the row back to what it is when the import is killed right before it writes it."""
    await deployment.execute(
        "UPDATE workspaces SET phase = 'STANDBY', archive_key = NULL, observed_at = NULL, "
        "home_store_key = $1 WHERE name = $2",
        home_key(status),
        status.lower(),
    )


async def test_the_import_finds_the_servers_of_codehub_up(deployment: M1Deployment) -> None:
    await deployment.keep_only("STOPPED")
    environment = {name: value for name, value in deployment.environment.items() if "S3" not in name}
    with up(environment, "--servers-only") as running:
        await asyncio.to_thread(running.read_until, "CodeHub is ready")
        run = await M1Deployment(
            deployment.url, deployment.bucket, deployment.directory, {}, environment
        ).import_homes()
        assert run.code == 0, run.output
        running.process.send_signal(signal.SIGINT)
        await asyncio.to_thread(running.process.wait)
    assert (await deployment.rows())["STOPPED"]["phase"] == "ARCHIVED"


async def test_the_audit_trail_names_the_path_that_the_home_came_from(deployment: M1Deployment) -> None:
    await deployment.keep_only("RUNNING", "STOPPED")
    await deployment.import_homes()
    connection = await connect(deployment.url)
    rows = await connection.fetch("SELECT * FROM workspace_events WHERE actor = 'codehub migrate'")
    await connection.close()
    assert len(rows) == 2
    assert any(home_key("RUNNING") in row["detail"] for row in rows)


def test_every_status_of_m1_has_an_expected_phase() -> None:
    assert set(PHASES_AFTER) == set(STATUSES)
