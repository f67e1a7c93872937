"""Pages that ask: they promise no more than is known, and give up nothing without consent."""

from urllib.parse import quote

import pytest

from codehub.db.running_slots import RunningWorkspace
from codehub.domain.conditions import Conditions
from codehub.domain.failures import EXPLANATIONS
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Phase
from codehub.words import CHOICES, FAILURES
from proxy.pages import Pages, Visit
from proxy.transport.routing import Response
from tests.html_pages import fields, read, text_of
from tests.proxy_visits import (
    ALL_CHOICES,
    ARCHIVES,
    ID,
    NOWHERE,
    ON_DISK,
    OTHER,
    PAGES,
    PATH,
    TOKEN,
    broken,
    deletion_failed,
    running,
    visit,
)


@pytest.mark.parametrize(
    ("page", "label"),
    [
        (PAGES.start_needed(visit(phase=Phase.PENDING)), "Start"),
        (PAGES.restore_needed(visit(phase=Phase.ARCHIVED)), "Restore and open"),
    ],
)
def test_a_button_starts_the_workspace_and_comes_back(page: Response, label: str) -> None:
    form = read(page).one("form")
    assert form.attributes == {"method": "post", "action": f"/hub/w/{ID}/.codehub/start"}
    assert fields(form) == {"token": TOKEN, "next": PATH}
    assert form.one("button").text == label


def test_an_archive_is_shown_with_its_time_and_size() -> None:
    page = read(PAGES.restore_needed(visit(phase=Phase.ARCHIVED)))
    assert "Your files are safe in the archive from 3 May, 14:02 UTC (312 MB)." in text_of(page)
    assert page.one("time").attributes == {"datetime": "2026-05-03T14:02:00+00:00"}


def test_an_error_offers_every_choice_in_its_own_form() -> None:
    page = read(PAGES.failed(broken(ErrorReason.DATA_LOST, "Volume is gone."), ALL_CHOICES))
    assert "Volume is gone." in text_of(page)
    forms = list(page.all("form"))
    assert {each.attributes["action"] for each in forms} == {f"/hub/w/{ID}/.codehub/recover"}
    assert [fields(each)["choice"] for each in forms] == list(RecoverChoice)
    for form, choice in zip(forms, RecoverChoice, strict=True):
        assert fields(form).items() >= {"token": TOKEN, "next": PATH}.items()
        assert CHOICES[choice].meaning in form.text.lower()
        assert (CHOICES[choice].consequence or "") in text_of(form)


def test_only_giving_up_files_needs_consent() -> None:
    page = read(PAGES.failed(broken(ErrorReason.DATA_LOST), ALL_CHOICES))
    required = {
        fields(form)["choice"]: [
            each.attributes for each in form.all("input") if "required" in each.attributes
        ]
        for form in page.all("form")
    }
    consent = {"type": "checkbox", "name": "understood", "value": "yes", "required": ""}
    assert required == {
        "retry": [],
        "wait": [],
        "restore_archive": [consent],
        "use_disk": [consent],
        "start_empty": [consent],
    }


def test_archives_are_listed_with_time_size_and_verification() -> None:
    page = read(PAGES.failed(broken(ErrorReason.ARCHIVE_CORRUPTED), ALL_CHOICES, ARCHIVES))
    listed = list(page.one("fieldset").all("label"))
    assert [text_of(each) for each in listed] == [
        "2 May, 10:00 UTC · 311 MB · not verified yet",
        "Unknown time · size unknown · verified 1 May, 10:00 UTC",
    ]
    assert [each.one("input").attributes["value"] for each in listed] == [
        str(each.archive_op_id) for each in ARCHIVES
    ]
    assert all("required" in each.one("input").attributes for each in listed)


def test_a_failed_deletion_can_be_retried_undone_or_made_final() -> None:
    page = read(PAGES.failed(deletion_failed(error_message="No space left."), (RecoverChoice.RETRY,)))
    assert "It could not be deleted" in text_of(page)
    assert "No space left." in text_of(page)
    actions = {form.attributes["action"].rpartition("/")[2]: form for form in page.all("form")}
    assert list(actions) == ["recover", "undelete", "purge"]
    required = [each for each in actions["purge"].all("input") if "required" in each.attributes]
    assert [each.attributes["name"] for each in required] == ["understood"]


@pytest.mark.parametrize("reason", ErrorReason)
def test_every_reason_is_explained(reason: ErrorReason) -> None:
    page = read(PAGES.failed(broken(reason, EXPLANATIONS[reason]), ALL_CHOICES[:1]))
    text = text_of(page.one("main"))
    assert FAILURES[reason].happened in text
    assert "`" not in text
    assert not [each for each in page.all("p") if each.attributes.get("class") == "message"]


@pytest.mark.parametrize(
    ("page", "promise"),
    [
        (
            broken(ErrorReason.TIMEOUT, conditions=ON_DISK, archived_at=None),
            "Your files are on the workspace",
        ),
        (
            broken(ErrorReason.TIMEOUT, conditions=ON_DISK),
            "and the archive from 3 May, 14:02 UTC (312 MB) is",
        ),
        (broken(ErrorReason.TIMEOUT), "Your files are safe in the archive from 3 May"),
        (broken(ErrorReason.DATA_LOST), "An older version of your files is in the archive from 3 May"),
        (broken(ErrorReason.ARCHIVE_CORRUPTED), "Nothing was deleted: the archive from 3 May"),
        (broken(ErrorReason.DATA_LOST, conditions=NOWHERE), "nothing will be deleted before you decide"),
        (broken(ErrorReason.TIMEOUT, conditions=Conditions()), "nothing will be deleted before you decide"),
        (deletion_failed(conditions=ON_DISK, archived_at=None), "Your files are on the workspace"),
        (deletion_failed(conditions=ON_DISK, purge=True), None),
    ],
)
def test_no_more_is_promised_than_is_known(page: Visit, promise: str | None) -> None:
    promises = [
        text_of(each)
        for each in read(PAGES.failed(page, ())).all("div")
        if each.attributes["class"] == "safe"
    ]
    assert len(promises) == (promise is not None)
    assert all(promise in each for each in promises if promise)


def test_at_the_limit_the_page_lists_what_can_be_stopped() -> None:
    page = read(PAGES.limit_reached(visit(), [running()], 2, everyone=False))
    assert "You can run 2 workspaces at once." in text_of(page)
    assert text_of(page.one("li")) == "website Running Stop"
    stop, again = page.one("main").all("a")
    wanted = quote(PATH)
    assert stop.attributes["href"] == f"/hub/w/{OTHER}/.codehub/stop?next={wanted}"
    assert again.attributes["href"] == f"/hub{PATH}"
    assert not list(page.all("noscript"))


def test_a_page_has_no_token_to_stop_another_workspace() -> None:
    page = PAGES.limit_reached(visit(), [running()], 2, everyone=False)
    assert not list(read(page).all("form"))
    assert TOKEN.encode() not in page.body


def test_a_stop_is_confirmed_and_leads_back() -> None:
    page = read(PAGES.confirm_stop(visit(phase=Phase.RUNNING)))
    form = page.one("form")
    assert form.attributes == {"method": "post", "action": f"/hub/w/{ID}/.codehub/stop"}
    assert fields(form) == {"token": TOKEN, "next": PATH}
    assert [each.attributes["href"] for each in page.one("main").all("a")] == [f"/hub{PATH}"]


@pytest.mark.parametrize(
    ("desired", "state"), [(DesiredState.STANDBY, "Stopping…"), (DesiredState.DELETED, "Deleting…")]
)
def test_the_page_waits_for_a_slot_that_is_being_freed(desired: DesiredState, state: str) -> None:
    page = read(PAGES.limit_reached(visit(), [running(desired=desired)], 1, everyone=False))
    assert text_of(page.one("li")) == f"website {state}"
    assert not list(page.all("form"))
    assert page.one("main").attributes == {"data-reload": "2", "data-address": f"/hub{PATH}"}
    (refresh,) = page.one("noscript").all("meta")
    assert refresh.attributes["content"] == f"3; url=/hub{PATH}"


@pytest.mark.parametrize(
    ("slot", "state"),
    [
        (running(), "Running"),
        (running(Phase.STANDBY), "Starting…"),
        (running(Phase.ERROR), "Failed"),
        (running(Phase.ERROR, DesiredState.STANDBY), "Failed"),
    ],
)
def test_a_slot_shows_the_state_of_its_workspace(slot: RunningWorkspace, state: str) -> None:
    page = read(PAGES.limit_reached(visit(), [slot], 100, everyone=True))
    assert page.one("span").text == state


def test_unavailable_says_when_to_try_again() -> None:
    assert dict(PAGES.unavailable().headers)["Retry-After"] == "5"


def test_forbidden_shows_only_the_own_username() -> None:
    page = text_of(read(PAGES.forbidden("grace")).one("main"))
    assert "You are signed in as grace." in page


def test_an_installation_at_the_root_has_no_base_path() -> None:
    form = read(Pages().start_needed(visit())).one("form")
    assert form.attributes["action"] == f"/w/{ID}/.codehub/start"
