"""What clients are told adds up to what there is, and the mark says so."""

import json

from hypothesis import given
from hypothesis import strategies as st

from api.live.wire import DELETED, SNAPSHOT, UPDATED, Frame, LiveWorkspace, SentState

Contents = dict[str, str]

CONTENTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"]))


def rows(contents: Contents) -> list[LiveWorkspace]:
    return [
        LiveWorkspace(name, json.dumps({"id": name, "content": content}))
        for name, content in contents.items()
    ]


def event_id_of(contents: Contents) -> str:
    fresh = SentState()
    fresh.update(rows(contents), None)
    return fresh.event_id


def told(contents: Contents, frame: Frame) -> Contents:
    """What a browser makes of it."""
    data = json.loads(frame.data)
    if frame.event == DELETED:
        return {name: content for name, content in contents.items() if name != data["id"]}
    assert frame.event == UPDATED
    return contents | {data["id"]: data["content"]}


@given(st.lists(CONTENTS))
def test_after_each_frame_the_mark_is_that_of_what_the_browser_shows(history: list[Contents]) -> None:
    sent, shown = SentState(), Contents()
    for contents in history:
        for frame in sent.update(rows(contents), None):
            shown = told(shown, frame)
            assert frame.id == event_id_of(shown)
        assert shown == contents
        assert sent.event_id == event_id_of(contents)


@given(CONTENTS, CONTENTS)
def test_marks_are_equal_only_for_equal_content_in_whatever_order(one: Contents, other: Contents) -> None:
    assert (event_id_of(one) == event_id_of(other)) == (one == other)
    assert event_id_of(one) == event_id_of(dict(reversed(one.items())))


@given(CONTENTS, CONTENTS, st.sets(st.sampled_from("abcdef")))
def test_only_what_was_asked_for_is_told(before: Contents, after: Contents, asked: set[str]) -> None:
    sent = SentState()
    sent.update(rows(before), None)
    found = {name: content for name, content in after.items() if name in asked}
    shown = before
    for frame in sent.update(rows(found), asked):
        shown = told(shown, frame)
    assert shown == {name: content for name, content in before.items() if name not in asked} | found


def test_what_is_known_already_is_not_told() -> None:
    sent = SentState()
    assert len(sent.update(rows({"a": "x", "b": "x"}), None)) == 2
    assert sent.update(rows({"a": "x", "b": "x"}), None) == []
    assert sent.update([], {"never seen"}) == []


def test_a_snapshot_has_everything_and_the_mark() -> None:
    sent, present = SentState(), rows({"a": "x", "b": "y"})
    sent.update(present, None)
    snapshot = sent.snapshot(present)
    assert (snapshot.event, snapshot.id) == (SNAPSHOT, event_id_of({"a": "x", "b": "y"}))
    assert json.loads(snapshot.data) == {
        "workspaces": [{"id": "a", "content": "x"}, {"id": "b", "content": "y"}]
    }


def test_a_frame_is_one_server_sent_event_whatever_is_in_it() -> None:
    assert Frame("some", "{}").encode() == b"event: some\ndata: {}\n\n"
    assert Frame("some", "{}", "7", 2000).encode() == b"event: some\nid: 7\nretry: 2000\ndata: {}\n\n"
    assert (
        Frame("some", '{\r\n"a":\r1}').encode() == b'event: some\ndata: {\ndata: \ndata: "a":\ndata: 1}\n\n'
    )
    # Legal inside of JSON and no end of a line.
    assert Frame("some", '"\u2028"').encode() == 'event: some\ndata: "\u2028"\n\n'.encode()
