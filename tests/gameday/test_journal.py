"""The journal allows every possible outcome and nothing else."""

from gameday.people.journal import Existence, Journal

HOME, FILE = "workspace", "notes.txt"


def write(journal: Journal, before: str | None, after: str | None) -> None:
    assert journal.acknowledge(journal.begin(HOME, FILE, before, after)) == []


def problems_of(journal: Journal, content: str | None) -> list[str]:
    return journal.verify(HOME, {} if content is None else {FILE: content})


def test_acknowledged_content_must_exist() -> None:
    journal = Journal()
    write(journal, None, "first")
    assert problems_of(journal, "first") == []
    assert problems_of(journal, None) == [f"{FILE} is missing; it should be first"]


def test_older_content_is_distinguished_from_unknown_content() -> None:
    journal = Journal()
    write(journal, None, "first")
    write(journal, "first", "second")
    assert "an older content, first" in problems_of(journal, "first")[0]
    assert "never acknowledged, other" in problems_of(journal, "other")[0]


def test_a_deleted_file_must_not_come_back() -> None:
    journal = Journal()
    write(journal, None, "first")
    write(journal, "first", None)
    assert problems_of(journal, None) == []
    assert len(problems_of(journal, "first")) == 1


def test_an_unknown_file_is_a_violation() -> None:
    assert Journal().verify(HOME, {"stray": "content"}) == ["nobody wrote stray"]


def test_a_write_without_a_response_may_or_may_not_have_happened() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.leave_open(journal.begin(HOME, FILE, "first", "second"))
    assert journal.expected(HOME) == {FILE: frozenset({"first", "second"})}
    assert len(problems_of(journal, None)) == 1


def test_several_changes_may_be_open_at_once() -> None:
    journal = Journal()
    write(journal, None, "first")
    for after in ("second", None):
        journal.leave_open(journal.begin(HOME, FILE, "first", after))
    journal.leave_open(journal.begin(HOME, FILE, "second", "third"))
    assert journal.expected(HOME) == {FILE: frozenset({"first", "second", "third", None})}


def test_observed_content_is_as_certain_as_acknowledged_content() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.leave_open(journal.begin(HOME, FILE, "first", "second"))
    assert journal.observe(HOME, FILE, "second") == []
    assert len(problems_of(journal, "first")) == 1


def test_an_open_change_may_still_happen_after_a_read_without_it() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.leave_open(journal.begin(HOME, FILE, "first", "second"))
    assert journal.observe_all(HOME, {FILE: "first"}) == []
    assert problems_of(journal, "second") == []


def test_an_acknowledged_change_rules_out_others_that_replace_the_same_content() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.leave_open(journal.begin(HOME, FILE, "first", "late"))
    write(journal, "first", "second")
    assert journal.is_certain(HOME, FILE)
    assert len(problems_of(journal, "late")) == 1


def test_an_open_creation_may_happen_whenever_the_file_is_missing() -> None:
    journal = Journal()
    journal.leave_open(journal.begin(HOME, FILE, None, "late"))
    write(journal, None, "first")
    assert journal.is_certain(HOME, FILE)
    write(journal, "first", None)
    assert journal.expected(HOME) == {FILE: frozenset({None, "late"})}


def test_an_observed_creation_does_not_happen_again() -> None:
    journal = Journal()
    journal.leave_open(journal.begin(HOME, FILE, None, "first"))
    assert journal.observe(HOME, FILE, "first") == []
    write(journal, "first", None)
    assert len(problems_of(journal, "first")) == 1


def test_an_acknowledged_change_of_replaced_content_reveals_an_older_home() -> None:
    journal = Journal()
    write(journal, None, "first")
    stale = journal.begin(HOME, FILE, "first", "third")
    write(journal, "first", "second")
    assert "an older content, first" in journal.acknowledge(stale)[0]


def test_a_refused_change_leaves_the_file_unchanged() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.refuse(journal.begin(HOME, FILE, "first", "second"))
    assert journal.known(HOME) == {FILE: "first"}
    assert journal.is_certain(HOME, FILE)


def test_a_refusal_because_of_other_content_is_a_violation_if_the_content_is_certain() -> None:
    journal = Journal()
    write(journal, None, "first")
    assert len(journal.refuse_other_content(journal.begin(HOME, FILE, "first", "second"))) == 1
    journal.leave_open(journal.begin(HOME, FILE, "first", "late"))
    assert journal.refuse_other_content(journal.begin(HOME, FILE, "first", "second")) == []


def state_of(existence: Existence) -> str:
    return "exists" if existence.must_exist else "gone" if existence.must_be_gone else "open"


def test_a_workspace_must_exist_until_its_deletion_is_requested() -> None:
    existence = Journal().existence(HOME)
    assert state_of(existence) == "exists"
    request = existence.begin_deletion()
    assert state_of(existence) == "open"
    existence.refuse_deletion(request)
    assert state_of(existence) == "exists"


def test_an_acknowledged_deletion_holds_until_it_is_undone() -> None:
    existence = Journal().existence(HOME)
    existence.acknowledge_deletion(existence.begin_deletion(), purged=False)
    assert state_of(existence) == "gone"
    request = existence.begin_undelete()
    assert state_of(existence) == "open"
    existence.acknowledge_undelete(request)
    assert state_of(existence) == "exists"


def test_a_purge_cannot_be_undone() -> None:
    existence = Journal().existence(HOME)
    existence.acknowledge_deletion(existence.begin_deletion(), purged=True)
    existence.begin_undelete()
    assert state_of(existence) == "gone"


def test_a_deletion_without_a_response_may_happen_after_another_was_undone() -> None:
    existence = Journal().existence(HOME)
    existence.begin_deletion()
    existence.acknowledge_deletion(existence.begin_deletion(), purged=False)
    existence.acknowledge_undelete(existence.begin_undelete())
    assert state_of(existence) == "open"
