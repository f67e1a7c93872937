"""`codehub migrate --import-homes` says why it does not import a home, and leaves it as it is."""

import sys
from pathlib import Path

import pytest

from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.naming import volume_name
from migrations import runner
from tests.buckets import Bucket
from tests.m1.deployment import M1Deployment
from tests.m1.leftovers import IDS, home_key
from tests.storage_jobs import path_with_fake

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
async def deployment(empty_database_url: str, bucket: Bucket, tmp_path: Path) -> M1Deployment:
    return await M1Deployment.create(empty_database_url, bucket, tmp_path)


async def test_a_home_that_changes_during_its_import_is_reported_and_not_imported(
    deployment: M1Deployment, tmp_path: Path
) -> None:
    await deployment.keep_only("RUNNING", "STOPPED")
    busy = deployment.homes["RUNNING"] / "secret"
    # The home changes whenever tar has read one.
    fake = path_with_fake(
        tmp_path / "bin", "tar", f'/usr/bin/tar "$@"; status=$?; date >> {busy}; exit $status'
    )
    run = await deployment.import_homes(PATH=fake)
    assert run.code == 1
    [line] = [line for line in run.output.splitlines() if "running (" in line]
    assert "not imported: it changed during the import ('secret' differs in its" in line
    assert "Imported 1 home; 1 home left" in run.output
    row = (await deployment.rows())["RUNNING"]
    assert (row["archive_key"], row["home_store_key"]) == (None, home_key("RUNNING"))
    assert not [key for key in await deployment.bucket.keys() if str(row["id"]) in key]
    assert (await deployment.import_homes()).code == 0


async def test_a_missing_home_is_reported_and_given_up_only_on_request(deployment: M1Deployment) -> None:
    await deployment.keep_only("CREATED", "STOPPED", "ERROR")
    (deployment.homes["STOPPED"]).rename(deployment.directory / "elsewhere")
    run = await deployment.import_homes()
    assert run.code == 1
    assert f"not imported: there is no directory {deployment.homes['STOPPED']}." in run.output
    # A missing home may mean that the wrong directory was named, so it blocks the import.
    rows = await deployment.rows()
    assert rows["STOPPED"]["home_store_key"] == home_key("STOPPED")
    assert rows["CREATED"]["home_store_key"] == home_key("CREATED")
    run = await deployment.import_homes("--accept-missing")
    assert run.code == 0
    assert "its home is missing and was given up" in run.output
    rows = await deployment.rows()
    # The next observation finds that a complete volume is missing, and the owner decides.
    assert (rows["STOPPED"]["phase"], rows["STOPPED"]["archive_key"]) == ("STANDBY", None)
    assert rows["STOPPED"]["home_store_key"] == volume_name(IDS["STOPPED"])


async def test_a_volume_that_is_not_empty_is_not_replaced(deployment: M1Deployment) -> None:
    await deployment.keep_only("STOPPED")
    LocalRoot.at(deployment.root).prepare()
    await LocalVolumes(deployment.root).provision(IDS["STOPPED"])
    theirs = deployment.root / "volumes" / volume_name(IDS["STOPPED"]) / "theirs"
    theirs.write_text("not ours to remove")
    run = await deployment.import_homes()
    assert run.code == 1
    assert f"there is already a volume {volume_name(IDS['STOPPED'])}" in run.output
    assert (await deployment.rows())["STOPPED"]["archive_key"] is None
    assert theirs.read_text() == "not ours to remove"


async def test_a_directory_without_users_is_not_m1s(deployment: M1Deployment, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run = await M1Deployment(
        deployment.url, deployment.bucket, tmp_path / "other", {}, deployment.environment
    ).import_homes()
    assert run.code == 1
    assert run.output.splitlines()[-1].startswith(f"There is no directory users/ in {tmp_path / 'other'}: ")
    assert (await deployment.rows())["CREATED"]["home_store_key"] == home_key("CREATED")


async def test_a_path_that_leads_out_of_the_directory_is_refused(deployment: M1Deployment) -> None:
    await deployment.keep_only("STOPPED")
    await deployment.execute(
        "UPDATE workspaces SET home_store_key = 'users/../../etc' WHERE status = 'STOPPED'"
    )
    run = await deployment.import_homes()
    assert run.code == 1
    assert "its path in M1's database is not one of M1: 'users/../../etc'." in run.output


async def _call_lost(deployment: M1Deployment) -> None:
    """Write the row as an earlier version did when it did not find the home."""
    LocalRoot.at(deployment.root).prepare()
    await runner.upgrade(deployment.url)
    await deployment.execute(
        "UPDATE workspaces SET phase = 'ERROR', error_reason = 'DataLost', error_message = 'gone', "
        "observed_at = now(), conditions = jsonb_set(conditions, '{storage.volume_ready}', "
        '\'{"status": "False", "reason": "Vanished", "message": ""}\') WHERE name = \'stopped\''
    )


async def test_a_home_that_its_owner_restarts_empty_during_the_import_is_not_replaced(
    deployment: M1Deployment, tmp_path: Path
) -> None:
    await deployment.keep_only("STOPPED")
    await _call_lost(deployment)
    start_empty = (
        "UPDATE workspaces SET phase = 'STANDBY', error_reason = NULL, error_message = NULL "
        "WHERE name = 'stopped'"
    )
    decide = tmp_path / "decide.py"
    decide.write_text(
        "import asyncio, asyncpg\n"
        "async def main():\n"
        f"    connection = await asyncpg.connect({deployment.url!r})\n"
        f"    await connection.execute({start_empty!r})\n"
        "asyncio.run(main())\n"
    )
    fake = path_with_fake(
        tmp_path / "bin", "tar", f'/usr/bin/tar "$@"; status=$?; {sys.executable} {decide}; exit $status'
    )
    run = await deployment.import_homes(PATH=fake)
    assert run.code == 1
    [line] = [line for line in run.output.splitlines() if "stopped (" in line]
    assert "the workspace was used, in the meantime" in line
    row = (await deployment.rows())["STOPPED"]
    assert (row["phase"], row["archive_key"]) == ("STANDBY", None)


async def test_a_home_that_an_earlier_version_called_lost_is_found(deployment: M1Deployment) -> None:
    await deployment.keep_only("STOPPED")
    await _call_lost(deployment)
    run = await deployment.import_homes()
    assert run.code == 0, run.output
    row = (await deployment.rows())["STOPPED"]
    assert (row["phase"], row["desired_state"], row["error_reason"]) == ("ARCHIVED", "STANDBY", None)


async def test_without_s3_the_import_does_not_start(deployment: M1Deployment) -> None:
    environment = {name: value for name, value in deployment.environment.items() if "S3" not in name}
    run = await M1Deployment(
        deployment.url, deployment.bucket, deployment.directory, {}, environment
    ).import_homes()
    assert run.code == 2
    assert "CODEHUB_S3_ENDPOINT_URL is not set" in run.output


async def test_an_unreachable_store_is_reported_in_one_sentence(deployment: M1Deployment) -> None:
    run = await deployment.import_homes(CODEHUB_S3_ENDPOINT_URL="http://127.0.0.1:1")
    assert run.code == 1
    assert "Traceback" not in run.output
    assert (await deployment.rows())["STOPPED"]["home_store_key"] == home_key("STOPPED")
