"""Deliberate violations of the rules that protect files, each with the test that must fail."""

from dataclasses import dataclass

from testkit.mutations.detectors import Detector, Game, Tests, crash


@dataclass(frozen=True)
class Mutation:
    """A replacement of one text in one file."""

    name: str
    file: str
    old: str
    new: str
    detector: Detector


# Games take minutes, so mutations share one.
GAME = Game("mutations")

MUTATIONS = (
    Mutation(
        "volume removed before the key is committed",
        "workflows/operations.py",
        """\
            await run_local_step(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)
            key = archive.key
        await run_step(VolumeActivities.remove_archived_volume, request, key, policy=CHANGE)
""",
        """\
            key = archive.key
        await run_step(VolumeActivities.remove_archived_volume, request, key, policy=CHANGE)
        if request.needs_upload:
            await run_local_step(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)
""",
        crash("ARCHIVING", "after:remove_archived_volume"),
    ),
    Mutation(
        "restore marker set before extraction",
        "workflows/operations.py",
        """\
        await run_step(ArchiveActivities.restore_archive, request, policy=RESTORE)
        await run_local_step(WorkspaceActivities.mark_restored, request, policy=COMMIT)
""",
        """\
        await run_local_step(WorkspaceActivities.mark_restored, request, policy=COMMIT)
        await run_step(ArchiveActivities.restore_archive, request, policy=RESTORE)
""",
        crash("RESTORING", "before:restore_archive"),
    ),
    Mutation(
        "pipefail dropped",
        "storage_job/tar_process.py",
        "        if status != 0:\n",
        "        if status < 0:\n",
        Tests("tests/integration/test_storage_job_failures.py", "never_masked"),
    ),
    Mutation(
        "exit status of tar ignored",
        "storage_job/home_stream.py",
        "        self._tar.check()\n",
        "",
        Tests("tests/integration/test_storage_job_failures.py", "never_masked"),
    ),
    Mutation(
        "checksum not compared",
        "storage_job/restore.py",
        "        if sha256 != meta.sha256:\n",
        "        if not sha256:\n",
        Tests("tests/adversarial/test_damaged_archives.py", "swapped_metas"),
    ),
    Mutation(
        "archive not compared with its record",
        "storage_job/restore.py",
        "    if request.expected_sha256 not in (None, meta.sha256):\n",
        "    if request.expected_sha256 == meta.sha256 == None:\n",
        Tests("tests/integration/test_storage_job_damage.py", "exchanged_together_with_its_meta"),
    ),
    Mutation(
        "old content gone before the new is in place",
        "storage_job/swap.py",
        "    except OSError:\n        for source, target in done:\n",
        "    except OSError:\n        for source, target in done[:0]:\n",
        Tests("tests/adversarial/test_immovable_content.py", "immutable_entry_at_the_top"),
    ),
    Mutation(
        "claim without compare-and-set",
        "codehub/db/snapshots.py",
        "        .where(Workspace.operation == Operation.NONE)\n",
        "",
        Tests("tests/integration/test_snapshots.py", "fifty_concurrent_claims"),
    ),
    Mutation(
        "archive collected without a grace period",
        "codehub/domain/garbage.py",
        "    return now - orphan_since >= periods.orphan\n",
        "    return now >= orphan_since\n",
        Tests("tests/workflows/test_gc.py", "superseded_archive"),
    ),
    Mutation(
        "older archive collected while the current one is missing",
        "codehub/domain/garbage.py",
        "    if owner.archive_missing or key in owner.given_up:\n",
        "    if key in owner.given_up:\n",
        Tests("tests/workflows/test_gc.py", "current_one_is_missing"),
    ),
    Mutation(
        "archive collected during the undelete period",
        "codehub/domain/garbage.py",
        "    return not owner.purge and now < owner.deleted_at + periods.undelete\n",
        "    return not owner.purge and now < owner.deleted_at\n",
        Tests("tests/workflows/test_undeleting.py", "undone_for_days"),
    ),
    Mutation(
        "home not archived again once there is an archive",
        "codehub/domain/planner.py",
        "    return snapshot.operation is Operation.ARCHIVING and snapshot.conditions.volume_ready.is_true\n",
        "    return snapshot.operation is Operation.ARCHIVING and snapshot.archive_key is None\n",
        crash("RESTORING", "after:mark_restored"),
    ),
    Mutation(
        "home archived while its IDE runs",
        "codehub/domain/planner.py",
        "    (Phase.RUNNING, DesiredState.ARCHIVED): Operation.STOPPING,\n",
        "    (Phase.RUNNING, DesiredState.ARCHIVED): Operation.ARCHIVING,\n",
        GAME,
    ),
    Mutation(
        "activity acts after its claim has ended",
        "activities/fencing.py",
        "(claim.operation, claim.claimed_at) != (request.operation, request.claimed_at)",
        "claim.operation is not request.operation",
        Tests("tests/workflows/test_guards.py", "outlived_its_claim"),
    ),
    Mutation(
        "observation stored although the row has changed",
        "activities/workspace.py",
        "                if row == observed.row:\n",
        "                if observed.row:\n",
        Tests("tests/workflows/test_paused_workers.py", "before_the_home_was_made"),
    ),
    Mutation(
        "claim released although its archive is committed",
        "codehub/domain/planner.py",
        "    return snapshot.operation in REVERSIBLE or needs_upload(snapshot)\n",
        "    return snapshot.operation is not Operation.NONE\n",
        Tests("tests/workflows/test_outages.py", "claim_is_held"),
    ),
    Mutation(
        "claim held through an outage",
        "codehub/domain/planner.py",
        "    return snapshot.operation in REVERSIBLE or needs_upload(snapshot)\n",
        "    return False\n",
        Tests("tests/workflows/test_outages.py", "people_can_start"),
    ),
    Mutation(
        "failed purge retried without a pause",
        "codehub/domain/transitions.py",
        "        given_up = replace(given_up, retry_at=now + pause)\n",
        "        given_up = replace(given_up, retry_at=now - pause)\n",
        Tests("tests/workflows/test_outages.py", "purge_that_cannot_finish"),
    ),
    Mutation(
        "replay plans instead of following the recorded plan",
        "workflows/converge.py",
        "    return snapshot.plan or plan(snapshot)\n",
        "    return plan(snapshot)\n",
        Tests("tests/replay/test_replay.py", "recorded_plan"),
    ),
    Mutation(
        "volume removed without checking its archive",
        "activities/volume.py",
        "is not ArchiveFact.PRESENT:\n",
        "is ArchiveFact.UNREACHABLE:\n",
        Tests("tests/workflows/test_guards.py", "archive_is_gone"),
    ),
    Mutation(
        "deletion removes a home that is not archived",
        "codehub/domain/deletion.py",
        "    return is_leftover(snapshot) and archive is ArchiveFact.PRESENT\n",
        "    return archive is not ArchiveFact.UNREACHABLE\n",
        Tests("tests/workflows/test_guards.py", "never_removes_a_home_that_is_not_archived"),
    ),
    Mutation(
        "any operation removes a volume",
        "codehub/domain/deletion.py",
        "    if snapshot.operation is not Operation.DELETING or not snapshot.deleted:\n",
        "    if snapshot.operation is Operation.NONE:\n",
        Tests("tests/unit/domain/test_deletion.py", "archive_exists"),
    ),
    Mutation(
        "home on a lost node given up for an archive that nobody saw",
        "codehub/domain/recovery.py",
        "    return chosen and out_of_reach and seen and snapshot.conditions.archive_ready.is_true\n",
        "    return chosen and out_of_reach\n",
        Tests("tests/workflows/test_lost_nodes.py", "nobody_sees_the_archive"),
    ),
    Mutation(
        "home on a lost node given up after a change of mind",
        "activities/recovery.py",
        """\
            if await _is_current(database, workspace_id, pending.request):
                await observer.volumes.set_aside(workspace_id)
""",
        """\
            await observer.volumes.set_aside(workspace_id)
""",
        Tests("tests/workflows/test_lost_nodes.py", "while_the_instance_is_stopped"),
    ),
    Mutation(
        "half-restored volume counts as complete",
        "codehub/domain/judge.py",
        "    return snapshot.restore_marker == snapshot.archive_key\n",
        "    return True\n",
        Tests("tests/model", "not model_can_fail"),
    ),
    Mutation(
        "stalled IDE counts as down",
        "codehub/domain/judge.py",
        "    is_blip = ready.is_true and now - silent_since < HANG_GRACE\n",
        "    is_blip = ready.is_true and now < silent_since\n",
        Tests("tests/model", "not model_can_fail"),
    ),
    Mutation(
        "running container replaced because its configuration changed",
        "codehub/adapters/docker/containers.py",
        '        return self.running and self.configuration != ""\n',
        "        return False\n",
        Tests("tests/docker/test_containers.py", "left_alone"),
    ),
    Mutation(
        "limits counted without a lock",
        "codehub/db/running_slots.py",
        "    await session.execute(select(func.pg_advisory_xact_lock(RUNNING_LIMITS_LOCK)))\n",
        "    await session.execute(select(func.now()))\n",
        Tests("tests/integration/test_limits.py", "two_hundred_concurrent"),
    ),
    Mutation(
        "other users can enter a workspace",
        "proxy/admission.py",
        "        if not cached.caller.may_enter(path.workspace_id, workspace.view.owner_user_id):\n",
        "        if workspace.view.owner_user_id is None:\n",
        Tests("tests/front_door/test_workspace_handler.py", "other_users_are_refused_everywhere"),
    ),
    Mutation(
        "observations of another home store are trusted",
        "codehub/services/guarded_providers.py",
        "        if problem := self._explain(identity):\n            raise",
        "        if problem := identity is None and self._explain(identity):\n            raise",
        Tests("tests/contracts/test_guarded_providers.py", "fake and until_it_is_adopted"),
    ),
    Mutation(
        "second host starts with its own home store",
        "codehub/services/home_store.py",
        "    if (recorded.backend, recorded.identity) == (backend, identity):\n",
        "    if recorded.backend == backend and identity:\n",
        Tests("tests/integration/test_home_store.py", "exactly_one_wins"),
    ),
)
