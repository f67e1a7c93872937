"""An attack by a workspace's page on its user: a script, its goal, and its positive control."""

from dataclasses import dataclass
from enum import Enum


class Goal(Enum):
    """What Mallory, who wrote the page, wants; `Run.has_reached` checks whether he got it."""

    # The script returns the name of the account, or the text that the other workspace serves to its owner.
    READ_ACCOUNT = "read the account"
    READ_NEIGHBOR = "read another workspace"
    # A change through the API: a token, a workspace or a memo that is named like the attempt.
    CHANGE = "change something through the API"
    # The other workspace's server receives a request with the owner's credentials.
    ENTER_NEIGHBOR = "reach the server of another workspace"
    # The dashboard no longer knows its user, or takes the user for Mallory.
    SIGN_OUT = "sign the user out"
    SIGN_IN_MALLORY = "sign the user in as Mallory"
    # Mallory's server receives a cookie or a ticket that is not its own.
    LEAK = "receive a credential"


class Control(Enum):
    """Where the same script succeeds, which proves that the attempt itself works."""

    # On a page of the main origin or of the other workspace: the same script, with the right origin.
    MAIN = "the main origin"
    NEIGHBOR = "the other workspace"
    # On an unprotected hub, for attempts that CodeHub refuses even to its own pages.
    NAIVE = "an unprotected hub"


@dataclass(frozen=True)
class Attempt:
    """The script is the body of an async function; `t` has its targets, and prelude.js its helpers."""

    name: str
    goal: Goal
    script: str
    control: Control = Control.MAIN
