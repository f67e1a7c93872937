"""Groups decide who may sign in and in which role; names of new accounts."""

import pytest

from codehub.domain.single_sign_on import (
    MAX_USERNAME_LENGTH,
    GroupRules,
    is_admin,
    may_sign_in,
    username_candidates,
)

ADMINS, ENGINEERS = frozenset({"admins"}), frozenset({"engineers"})
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("rules", "groups", "allowed"),
    [
        (GroupRules(), NONE, True),
        (GroupRules(), ENGINEERS, True),
        (GroupRules(ENGINEERS), ENGINEERS, True),
        (GroupRules(ENGINEERS), NONE, False),
        (GroupRules(ENGINEERS), frozenset({"Engineers"}), False),
        (GroupRules(ENGINEERS, ADMINS), ADMINS, True),
        (GroupRules(NONE, ADMINS), NONE, True),
    ],
)
def test_the_allowed_groups_and_administrators_may_sign_in(
    rules: GroupRules, groups: frozenset[str], allowed: bool
) -> None:
    assert may_sign_in(rules, groups) is allowed


@pytest.mark.parametrize(
    ("rules", "groups", "admin"),
    [
        (GroupRules(), ADMINS, None),
        (GroupRules(NONE, ADMINS), ADMINS | ENGINEERS, True),
        (GroupRules(NONE, ADMINS), ENGINEERS, False),
    ],
)
def test_groups_decide_the_role_only_if_some_are_configured(
    rules: GroupRules, groups: frozenset[str], admin: bool | None
) -> None:
    assert is_admin(rules, groups) is admin


@pytest.mark.parametrize(
    ("preferred", "name"),
    [
        ("ada", "ada"),
        ("ada@example.com", "ada@example.com"),
        ("Ada Lovelace", "Ada-Lovelace"),
        ("../admin", "admin"),
        ("<script>", "script"),
        ("-._@", "user"),
        ("Ünïcode", "n-code"),
        ("", "user"),
        (None, "user"),
        ("x" * 100, "x" * MAX_USERNAME_LENGTH),
    ],
)
def test_a_name_keeps_what_is_allowed(preferred: str | None, name: str) -> None:
    assert next(username_candidates(preferred, "1a2b3c")) == name


def test_further_names_have_a_number_and_the_last_one_a_part_of_the_identity() -> None:
    candidates = list(username_candidates("x" * 100, "1a2b3c"))
    assert candidates[1].endswith("x-2")
    assert candidates[-1].endswith("x-1a2b3c")
    assert {len(each) for each in candidates} == {MAX_USERNAME_LENGTH}
    assert len(set(candidates)) == len(candidates)
