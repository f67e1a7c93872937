"""`codehub migrate --import-homes` imports every home of M1 whole, or says why not."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.db.session import connect
from codehub.domain.naming import volume_name
from migrations import runner
from testkit.trees import Description, describe_tree
from testkit.waiting import until
from tests.buckets import Bucket
from tests.codehub_command import CODEHUB, CommandRun, run_codehub, up
from tests.m1.leftovers import IDS, STATUSES, WITH_HOMES, fill_database, home_key, make_homes
from tests.storage_jobs import path_with_fake, restore

pytestmark = pytest.mark.timeout(900)

HEAD = runner.revisions()[-1]
# Random bytes do not compress, so the upload takes a while.
BALLAST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class M1Deployment:
    """M1's database and homes, and the settings of the CodeHub that imports them."""

    url: str
    bucket: Bucket
    directory: Path
    homes: dict[str, Path]
    environment: dict[str, str]

    async def import_homes(self, *arguments: str, **environment: str) -> CommandRun:
        command = ("migrate", "--import-homes", str(self.directory), *arguments)
        return await run_codehub(self.environment | environment, *command)

    async def keep_only(self, *statuses: str) -> None:
        """Drop the other workspaces, whose import would only cost time."""
        await self.execute("DELETE FROM workspaces WHERE status <> ALL($1)", statuses)

    @contextmanager
    def importing(self) -> Iterator[subprocess.Popen[bytes]]:
        """Yield the command while it runs, and kill it afterwards."""
        with subprocess.Popen(
            (CODEHUB, "migrate", "--import-homes", str(self.directory)),
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    async def rows(self) -> dict[str, dict[str, Any]]:
        """Return the workspaces by their status in M1."""
        connection = await connect(self.url)
        try:
            found = await connection.fetch("SELECT * FROM workspaces")
        finally:
            await connection.close()
        return {row["name"].upper(): dict(row) for row in found}

    async def execute(self, statement: str, *arguments: object) -> None:
        connection = await connect(self.url)
        await connection.execute(statement, *arguments)
        await connection.close()

    def descriptions(self) -> dict[str, Description]:
        return {status: describe_tree(home) for status, home in self.homes.items()}

    @property
    def root(self) -> Path:
        return Path(self.environment["CODEHUB_DATA_DIR"]) / "local"


@pytest.fixture
async def deployment(empty_database_url: str, bucket: Bucket, tmp_path: Path) -> M1Deployment:
    await fill_database(empty_database_url)
    directory = tmp_path / "m1"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return M1Deployment(
        empty_database_url,
        bucket,
        directory,
        make_homes(directory),
        {
            **kept,
            "CODEHUB_DATABASE_URL": empty_database_url,
            "CODEHUB_S3_ENDPOINT_URL": bucket.server.endpoint_url,
            "CODEHUB_S3_ACCESS_KEY": bucket.server.access_key,
            "CODEHUB_S3_SECRET_KEY": bucket.server.secret_key,
            "CODEHUB_S3_BUCKET": bucket.name,
            "CODEHUB_DATA_DIR": str(tmp_path / "data"),
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        },
    )


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
            return process.poll() is not None or await state() != last

        await until(changed, "the import goes on")
        return process.poll() is None


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


async def test_an_unreachable_store_is_reported_in_one_sentence(deployment: M1Deployment) -> None:
    run = await deployment.import_homes(CODEHUB_S3_ENDPOINT_URL="http://127.0.0.1:1")
    assert run.code == 1
    assert "Traceback" not in run.output
    assert (await deployment.rows())["STOPPED"]["home_store_key"] == home_key("STOPPED")


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
