"""The gateway's counts of connections, before they are stored."""

from datetime import timedelta

from codehub.db.egress import LogKey, hour_of
from codehub.domain.egress import OTHER_NAMES, Refusal, Verdict
from egress.connection_log import MOST_ENTRIES, ConnectionLog
from egress.target import Target
from testkit.rows import NOW, new_workspace_id

ONE, OTHER = new_workspace_id(), new_workspace_id()


def test_a_workspace_that_asks_for_endless_names_fills_a_bounded_number_of_rows() -> None:
    now = NOW
    log = ConnectionLog(lambda: now)
    for number in range(MOST_ENTRIES * 3):
        log.record(ONE, Target(f"{number}.example", 443), Refusal.POLICY)
    log.record(OTHER, Target("site.example", 443), None)
    counts = log.take()
    assert counts[LogKey(ONE, hour_of(NOW), OTHER_NAMES, 0, Verdict.REFUSED)] == MOST_ENTRIES * 2
    assert counts[LogKey(OTHER, hour_of(NOW), "site.example", 443, Verdict.ALLOWED)] == 1
    assert len(counts) == MOST_ENTRIES + 2
    # Names that have a row still count there, and the next hour has room again.
    log.record(ONE, Target("0.example", 443), Refusal.POLICY)
    now = NOW + timedelta(hours=1)
    log.record(ONE, Target("new.example", 443), Refusal.POLICY)
    assert {key.name for key in log.take()} == {"0.example", "new.example"}


def test_counts_that_could_not_be_stored_are_added_to_new_ones() -> None:
    log = ConnectionLog(lambda: NOW)
    log.record(ONE, Target("site.example", 443), None)
    counts = log.take()
    assert log.take() == {}
    log.record(ONE, Target("site.example", 443), None)
    log.put_back(counts)
    assert list(log.take().values()) == [2]
