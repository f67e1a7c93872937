"""An attempt of a workspace's page against its user: a script, its goal, and its positive control."""

from dataclasses import dataclass
from enum import Enum


class Goal(Enum):
    """What Mallory, who wrote the page, wants; tests/attacks/goals.py tells whether he got it."""

    # The script returns the name of the account, or the text that the other workspace serves to its owner.
    READ_ACCOUNT = "read the account"
    READ_NEIGHBOR = "read another workspace"
    # A change that only the API can make: a token, a workspace, or the memo of one, called after the attempt.
    CHANGE = "change something through the API"
    # A request that the other workspace's server receives as its owner's.
    ENTER_NEIGHBOR = "reach the server of another workspace"
    # The dashboard does not know its user any more, or takes the user for Mallory.
    SIGN_OUT = "sign the user out"
    SIGN_IN_MALLORY = "sign the user in as Mallory"
    # Mallory's server receives a cookie or a ticket that is not its own.
    LEAK = "receive a credential"


class Control(Enum):
    """Where the same script reaches its goal, which proves that the attempt itself works."""

    # On a page of the main origin, or of the other workspace: the script is right, only its origin is wrong.
    MAIN = "the main origin"
    NEIGHBOR = "the other workspace"
    # On a hub without any protection, for attempts that CodeHub refuses to its own pages too.
    NAIVE = "an unprotected hub"


@dataclass(frozen=True)
class Attempt:
    """The script is the body of an async function; `t` has its targets, and prelude.js its helpers."""

    name: str
    goal: Goal
    script: str
    control: Control = Control.MAIN
