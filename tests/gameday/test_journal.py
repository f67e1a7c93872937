"""The journal allows what may have happened, and nothing else."""

from gameday.people.journal import Fate, Journal

HOME, FILE = "workspace", "notes.txt"


def write(journal: Journal, before: str | None, after: str | None) -> None:
    assert journal.acknowledge(journal.begin(HOME, FILE, before, after)) == []


def problems_of(journal: Journal, content: str | None) -> list[str]:
    return journal.verify(HOME, {} if content is None else {FILE: content})


def test_an_acknowledged_content_has_to_be_there() -> None:
    journal = Journal()
    write(journal, None, "first")
    assert problems_of(journal, "first") == []
    assert problems_of(journal, None) == [f"{FILE} is missing; it should be first"]


def test_an_older_content_is_told_from_a_foreign_one() -> None:
    journal = Journal()
    write(journal, None, "first")
    write(journal, "first", "second")
    assert "an older content, first" in problems_of(journal, "first")[0]
    assert "nobody acknowledged, other" in problems_of(journal, "other")[0]


def test_a_deleted_file_may_not_come_back() -> None:
    journal = Journal()
    write(journal, None, "first")
    write(journal, "first", None)
    assert problems_of(journal, None) == []
    assert len(problems_of(journal, "first")) == 1


def test_a_file_that_nobody_wrote_is_a_violation() -> None:
    assert Journal().verify(HOME, {"stray": "content"}) == ["stray was written by nobody"]


def test_a_write_without_an_answer_may_or_may_not_have_happened() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.give_up(journal.begin(HOME, FILE, "first", "second"))
    assert journal.expected(HOME) == {FILE: frozenset({"first", "second"})}
    assert len(problems_of(journal, None)) == 1


def test_several_changes_may_be_open_at_once() -> None:
    journal = Journal()
    write(journal, None, "first")
    for after in ("second", None):
        journal.give_up(journal.begin(HOME, FILE, "first", after))
    journal.give_up(journal.begin(HOME, FILE, "second", "third"))
    assert journal.expected(HOME) == {FILE: frozenset({"first", "second", "third", None})}


def test_what_was_seen_is_as_sure_as_what_was_acknowledged() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.give_up(journal.begin(HOME, FILE, "first", "second"))
    assert journal.see(HOME, FILE, "second") == []
    assert len(problems_of(journal, "first")) == 1


def test_an_open_change_may_still_arrive_after_a_read_without_it() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.give_up(journal.begin(HOME, FILE, "first", "second"))
    assert journal.see_all(HOME, {FILE: "first"}) == []
    assert problems_of(journal, "second") == []


def test_an_acknowledged_change_ends_the_chance_of_one_that_replaces_the_same_content() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.give_up(journal.begin(HOME, FILE, "first", "late"))
    write(journal, "first", "second")
    assert journal.is_sure(HOME, FILE)
    assert len(problems_of(journal, "late")) == 1


def test_an_open_creation_may_arrive_whenever_there_is_no_file() -> None:
    journal = Journal()
    journal.give_up(journal.begin(HOME, FILE, None, "late"))
    write(journal, None, "first")
    assert journal.is_sure(HOME, FILE)
    write(journal, "first", None)
    assert journal.expected(HOME) == {FILE: frozenset({None, "late"})}


def test_a_creation_that_was_seen_does_not_happen_again() -> None:
    journal = Journal()
    journal.give_up(journal.begin(HOME, FILE, None, "first"))
    assert journal.see(HOME, FILE, "first") == []
    write(journal, "first", None)
    assert len(problems_of(journal, "first")) == 1


def test_an_acknowledged_change_of_a_content_that_is_gone_shows_an_older_home() -> None:
    journal = Journal()
    write(journal, None, "first")
    stale = journal.begin(HOME, FILE, "first", "third")
    write(journal, "first", "second")
    assert "an older content, first" in journal.acknowledge(stale)[0]


def test_a_refused_change_leaves_what_was_there() -> None:
    journal = Journal()
    write(journal, None, "first")
    journal.refuse(journal.begin(HOME, FILE, "first", "second"))
    assert journal.known(HOME) == {FILE: "first"}
    assert journal.is_sure(HOME, FILE)


def test_a_refusal_for_another_content_is_a_violation_where_only_one_is_possible() -> None:
    journal = Journal()
    write(journal, None, "first")
    assert len(journal.refuse_other_content(journal.begin(HOME, FILE, "first", "second"))) == 1
    journal.give_up(journal.begin(HOME, FILE, "first", "late"))
    assert journal.refuse_other_content(journal.begin(HOME, FILE, "first", "second")) == []


def state_of(fate: Fate) -> str:
    return "exists" if fate.must_exist else "gone" if fate.must_be_gone else "open"


def test_a_workspace_has_to_exist_until_its_deletion_is_asked_for() -> None:
    fate = Journal().fate(HOME)
    assert state_of(fate) == "exists"
    number = fate.ask_deletion()
    assert state_of(fate) == "open"
    fate.refuse_deletion(number)
    assert state_of(fate) == "exists"


def test_an_acknowledged_deletion_holds_until_it_is_taken_back() -> None:
    fate = Journal().fate(HOME)
    fate.acknowledge_deletion(fate.ask_deletion(), purged=False)
    assert state_of(fate) == "gone"
    number = fate.ask_return()
    assert state_of(fate) == "open"
    fate.acknowledge_return(number)
    assert state_of(fate) == "exists"


def test_a_purge_cannot_be_taken_back() -> None:
    fate = Journal().fate(HOME)
    fate.acknowledge_deletion(fate.ask_deletion(), purged=True)
    fate.ask_return()
    assert state_of(fate) == "gone"


def test_a_deletion_without_an_answer_may_come_true_after_one_that_was_taken_back() -> None:
    fate = Journal().fate(HOME)
    fate.ask_deletion()
    fate.acknowledge_deletion(fate.ask_deletion(), purged=False)
    fate.acknowledge_return(fate.ask_return())
    assert state_of(fate) == "open"
