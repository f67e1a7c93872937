"""The report of a game that held and of one that did not."""

import json
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

from rich.console import Console

from gameday.checks.findings import Invariant, Violation
from gameday.faults.fault import FaultRecord
from gameday.options import Options
from gameday.report.lanes import make_history, make_lane
from gameday.report.result import GameResult
from gameday.report.text import print_report
from gameday.report.writer import render_html, write_report
from gameday.stage.recoveries import Recovery
from tests.gameday.histories import BEGAN, CLAIMED, COMPLETED, CREATED, WORKSPACE

OPTIONS = Options(0.5, "seed <1>")
FAULTS = (FaultRecord("kill-s3", 3.0, 0.1, "kill -9 of s3"), FaultRecord("disk-full", 0.2, 0.5, "full"))
TRAIL = [CREATED, CLAIMED, COMPLETED]


def _result(*violations: Violation, complete: bool = True) -> GameResult:
    return GameResult(
        options=OPTIONS,
        began=BEGAN,
        seconds=40.0,
        faults_ended=30.0,
        versions={"CodeHub": "0.1.0"},
        faults=FAULTS,
        recoveries=(Recovery("s3", 3.0, 1.5), Recovery("s3", 9.0, 0.5), Recovery("s3", 12.0, 4.0)),
        lanes=(make_lane(WORKSPACE, "<b>notes", TRAIL, BEGAN, 40.0),),
        tally={"files: read": 1234},
        checked=dict.fromkeys(Invariant, 5),
        violations=violations,
        histories={WORKSPACE: make_history(TRAIL, FAULTS, BEGAN)} if violations else {},
        complete=complete,
    )


BROKEN = _result(Violation(Invariant.FILES, WORKSPACE, "notes.txt is <missing>", 35.0))


def _printed(result: GameResult) -> str:
    console = Console(file=StringIO(), width=200)
    print_report(result, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_lane_has_phases_and_operations_in_seconds() -> None:
    [lane] = _result().lanes
    assert [(each.what, each.begin, each.end) for each in lane.phases] == [
        ("PENDING", 1.0, 4.0),
        ("STANDBY", 4.0, 40.0),
    ]
    assert [(each.what, each.begin, each.end) for each in lane.operations] == [("PROVISIONING", 2.0, 4.0)]


def test_a_history_includes_the_faults_of_its_lifetime() -> None:
    lines = make_history(TRAIL, FAULTS, BEGAN)
    assert [line.split("s  ", 1)[1].split()[0] for line in lines] == ["event", "event", "fault", "event"]
    assert "kill -9 of s3" in lines[2]


def test_only_a_complete_game_without_violations_holds() -> None:
    assert _result().held
    assert not BROKEN.held
    assert not _result(complete=False).held


def test_an_invariant_that_was_never_checked_does_not_count_as_held() -> None:
    result = replace(_result(), checked={each: int(each is Invariant.LIMITS) for each in Invariant})
    assert result.verdict == f"1 of {len(Invariant)} invariants held (the others were not tested)"


def test_recoveries_have_a_median_and_a_maximum() -> None:
    stats = _result().recovery_stats()["s3"]
    assert (stats.count, stats.median, stats.longest) == (3, 1.5, 4.0)


def test_the_terminal_shows_seed_faults_checks_and_the_command() -> None:
    printed = _printed(_result())
    for words in (
        f"All {len(Invariant)} invariants held",
        "kill-s3",
        "1,234",
        OPTIONS.command,
        Invariant.FILES.value,
    ):
        assert words in printed


def test_the_terminal_shows_a_violation_with_the_make_history_its_workspace() -> None:
    printed = _printed(BROKEN)
    assert "1 violations" in printed
    assert "notes.txt is <missing>" in printed
    assert "operation_claimed" in printed


class Reader(HTMLParser):
    """Collects the references of a page and checks that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in {"meta", "br", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_no_references_and_escapes_names() -> None:
    reader = Reader()
    reader.feed(render_html(BROKEN))
    assert not reader.open
    assert not reader.references
    for words in ("notes.txt is <missing>", "<b>notes", OPTIONS.command, "operation_claimed", "kill-s3 (1)"):
        assert words in reader.text


def test_the_report_files_are_named_by_date_backend_and_seed(tmp_path: Path) -> None:
    page = write_report(_result(), tmp_path / "reports")
    assert page.name == "2026-11-16-local-seed_1.html"
    document = json.loads(page.with_suffix(".json").read_text())
    assert document["held"] is True
    assert document["began"] == BEGAN.isoformat()
    assert document["faults_by_kind"] == {"kill-s3": 1, "disk-full": 1}
    assert document["recovery_times"]["s3"] == {"count": 3, "median": 1.5, "longest": 4.0}
    assert BEGAN + timedelta(seconds=document["lanes"][0]["phases"][0]["begin"]) == CREATED.at
