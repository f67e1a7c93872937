"""Decides who may sign in through an identity provider, with which role and user name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_USERNAME_LENGTH = 64
# How many numbered names to try before names with a part of the subject.
NUMBERED_NAMES = 20
FALLBACK_NAME = "user"
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._@-]+")


class SignInProblem(StrEnum):
    """Why a sign-in through the provider failed; codehub/words.py has a sentence for each."""

    EXPIRED = "oidc_expired"
    REFUSED = "oidc_refused"
    REJECTED = "oidc_rejected"
    UNAVAILABLE = "oidc_unavailable"
    NOT_ALLOWED = "oidc_not_allowed"
    DISABLED = "oidc_disabled"


@dataclass(frozen=True)
class GroupRules:
    """The relevant groups of the provider; empty sets mean that groups decide nothing."""

    allowed: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()


def may_sign_in(rules: GroupRules, groups: frozenset[str]) -> bool:
    """Return whether a member of these groups may sign in; administrators always may."""
    return not rules.allowed or bool(groups & (rules.allowed | rules.admins))


def is_admin(rules: GroupRules, groups: frozenset[str]) -> bool | None:
    """Return whether the groups make the user an administrator, or None if CodeHub decides that itself."""
    return bool(groups & rules.admins) if rules.admins else None


def username_candidates(preferred: str | None, unique: str) -> Iterator[str]:
    """Yield user names for a new account, best first; only the last is certain to be free.

    A taken name belongs to someone else: names never link an account to an identity.
    """
    name = _allowed_name(preferred or "")
    yield name
    for number in range(2, NUMBERED_NAMES + 1):
        yield _with_suffix(name, f"-{number}")
    yield _with_suffix(name, f"-{unique}")


def _allowed_name(preferred: str) -> str:
    cleaned = _NOT_ALLOWED.sub("-", preferred).strip("._@-")
    return cleaned[:MAX_USERNAME_LENGTH] or FALLBACK_NAME


def _with_suffix(name: str, suffix: str) -> str:
    return name[: MAX_USERNAME_LENGTH - len(suffix)] + suffix
