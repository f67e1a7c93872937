"""The table of words covers everything that people can see."""

import re
from enum import StrEnum

import pytest

from activities.archive import ArchiveActivities
from activities.instance import InstanceActivities
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from api.dashboard.generate import render_words
from codehub import words
from codehub.db.events import EventKind
from codehub.domain.conditions import CONDITION_KEYS, Reason, Resource
from codehub.domain.history import OperationResult
from codehub.domain.port_shares import Audience
from codehub.domain.recovery import HARMLESS, RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.audit import Action
from codehub.services.convergence import WAITING

OPERATIONS = set(Operation) - {Operation.NONE}
STEPS = [
    name
    for activities in (ArchiveActivities, InstanceActivities, VolumeActivities, WorkspaceActivities)
    for name, method in vars(activities).items()
    if hasattr(method, "__temporal_activity_definition")
]


@pytest.mark.parametrize(
    ("table", "members"),
    [
        (words.PHASES, set(Phase)),
        (words.OPERATIONS, OPERATIONS),
        (words.COMPLETED, OPERATIONS),
        (words.HEADING_TO, set(DesiredState)),
        (words.STATE_REQUESTS, set(DesiredState)),
        (words.RESULTS, set(OperationResult)),
        (words.AUDIENCES, set(Audience)),
        (words.AUDIT_ACTIONS, set(Action)),
        (words.FAILURES, set(ErrorReason)),
        (words.CHOICES, set(RecoverChoice)),
        (words.CONDITIONS, set(CONDITION_KEYS)),
        (words.PROVIDERS, set(Resource)),
        (words.EVENTS, set(EventKind)),
    ],
)
def test_every_member_has_words(table: dict[StrEnum, object], members: set[StrEnum]) -> None:
    assert set(table) == members


def test_phases_read_as_the_glossary_says() -> None:
    labels = [words.PHASES[phase].label for phase in Phase]
    assert labels == ["New", "Archived", "Stopped", "Running", "Failed", "Deleting", "Deleted"]


@pytest.mark.parametrize("step", [*STEPS, WAITING.step])
def test_every_step_has_words(step: str) -> None:
    assert step in words.STEPS


def test_notable_steps_have_words() -> None:
    assert set(words.STEPS) >= words.NOTABLE_STEPS


def test_every_choice_that_gives_something_up_has_a_consequence() -> None:
    harmless = {choice for choice, said in words.CHOICES.items() if said.consequence is None}
    assert harmless == HARMLESS
    kept = words.choice_words(RecoverChoice.RESTORE_ARCHIVE, out_of_reach=True)
    assert "disk on the lost node is kept" in (kept.consequence or "")


def test_every_reason_of_a_condition_has_words() -> None:
    said = {reason for condition in words.CONDITIONS.values() for reason in condition.reasons}
    shown_only_if_false = {Reason.ANSWERS, Reason.CURRENT, Reason.NOT_RUNNING, Reason.REACHABLE}
    # An unobserved condition has one sentence; these messages say what changed, and which node is lost.
    own_message = {Reason.OUTDATED, Reason.NODE_LOST}
    assert set(Reason) - said == shown_only_if_false | own_message | {Reason.NOT_OBSERVED}


def test_people_see_no_enum() -> None:
    sentences = re.findall(r': "(.*)"', render_words())
    assert len(sentences) > 100
    proper_nouns = re.compile(r"\b(CodeHub|IDE|VS Code|JupyterLab)\b")
    odd = re.compile(r"[A-Z]{2}|[a-z][A-Z]|_")
    assert [text for text in sentences if odd.search(proper_nouns.sub("", text))] == []
