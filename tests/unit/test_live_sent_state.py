"""The frames sent to a client add up to the current state, and the event id identifies it."""

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


def applied(contents: Contents, frame: Frame) -> Contents:
    """Apply a frame as a client does."""
    data = json.loads(frame.data)
    if frame.event == DELETED:
        return {name: content for name, content in contents.items() if name != data["id"]}
    assert frame.event == UPDATED
    return contents | {data["id"]: data["content"]}


@given(st.lists(CONTENTS))
def test_the_event_id_of_a_frame_identifies_the_state_after_it(history: list[Contents]) -> None:
    sent, shown = SentState(), Contents()
    for contents in history:
        for frame in sent.update(rows(contents), None):
            shown = applied(shown, frame)
            assert frame.id == event_id_of(shown)
        assert shown == contents
        assert sent.event_id == event_id_of(contents)


@given(CONTENTS, CONTENTS)
def test_event_ids_are_equal_only_for_equal_content_in_any_order(one: Contents, other: Contents) -> None:
    assert (event_id_of(one) == event_id_of(other)) == (one == other)
    assert event_id_of(one) == event_id_of(dict(reversed(one.items())))


@given(CONTENTS, CONTENTS, st.sets(st.sampled_from("abcdef")))
def test_only_requested_workspaces_are_updated(before: Contents, after: Contents, asked: set[str]) -> None:
    sent = SentState()
    sent.update(rows(before), None)
    found = {name: content for name, content in after.items() if name in asked}
    shown = before
    for frame in sent.update(rows(found), asked):
        shown = applied(shown, frame)
    assert shown == {name: content for name, content in before.items() if name not in asked} | found


def test_unchanged_workspaces_are_not_sent_again() -> None:
    sent = SentState()
    assert len(sent.update(rows({"a": "x", "b": "x"}), None)) == 2
    assert sent.update(rows({"a": "x", "b": "x"}), None) == []
    assert sent.update([], {"never seen"}) == []


def test_a_snapshot_has_all_workspaces_and_the_event_id() -> None:
    sent, present = SentState(), rows({"a": "x", "b": "y"})
    sent.update(present, None)
    snapshot = sent.snapshot(present)
    assert (snapshot.event, snapshot.id) == (SNAPSHOT, event_id_of({"a": "x", "b": "y"}))
    assert json.loads(snapshot.data) == {
        "workspaces": [{"id": "a", "content": "x"}, {"id": "b", "content": "y"}]
    }


def test_a_frame_is_one_server_sent_event_with_any_content() -> None:
    assert Frame("some", "{}").encode() == b"event: some\ndata: {}\n\n"
    assert Frame("some", "{}", "7", 2000).encode() == b"event: some\nid: 7\nretry: 2000\ndata: {}\n\n"
    assert (
        Frame("some", '{\r\n"a":\r1}').encode() == b'event: some\ndata: {\ndata: \ndata: "a":\ndata: 1}\n\n'
    )
    # Legal in JSON, and not the end of a line in an event stream.
    assert Frame("some", '"\u2028"').encode() == 'event: some\ndata: "\u2028"\n\n'.encode()
