"""What a person means by a name or an id."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from cli.client import Client
from cli.errors import ExitCode, Failed

Named = dict[str, Any]
LONGEST_SEARCH = 100


def find_workspace(client: Client, text: str) -> Named:
    """The workspace with this id, or the only one of mine with this name."""
    if is_id(text):
        found: Named = client.get(f"/workspaces/{text}")
        return found
    return pick(text, _search(client, text), "workspace", "codehub ws ls")


def find_deleted(client: Client, text: str) -> str:
    """Find the ID of a deleted workspace in the list; the API has no page for a single deleted one."""
    if is_id(text):
        return text
    going = [each for each in client.items("/workspaces", q=text[:LONGEST_SEARCH]) if each["deleted_at"]]
    if any(each["name"] == text for each in going):
        return str(pick(text, going, "deleted workspace", "codehub ws ls")["id"])
    found = _search(client, text, deleted=True)
    # One that was purged does not stand in the way of one that can come back.
    found = [each for each in found if each["undelete_until"]] or found
    return str(pick(text, found, "deleted workspace", "codehub ws ls --deleted")["id"])


def pick(text: str, candidates: Iterable[Named], kind: str, listing: str) -> Named:
    """The only one with this name."""
    known = list(candidates)
    found = [each for each in known if each["name"] == text]
    if len(found) == 1:
        return found[0]
    if found:
        raise Failed(
            f"{len(found)} of them are called {text}; say which one by its id:",
            code=ExitCode.USAGE,
            more=[_describe(each) for each in found],
        )
    similar = _similar(text, [str(each["name"]) for each in known])
    raise Failed(
        f"There is no {kind} called {text}{f'; did you mean {similar}?' if similar else '.'}",
        f"See what there is with: {listing}",
        code=ExitCode.NOT_FOUND,
    )


def is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _search(client: Client, text: str, *, deleted: bool = False) -> list[Named]:
    """Those that have the text in their name; all of them if none has, to find what was meant."""
    found = list(client.items("/workspaces", q=text[:LONGEST_SEARCH], deleted=deleted))
    if any(each["name"] == text for each in found):
        return found
    return list(client.items("/workspaces", deleted=deleted))


def _similar(text: str, names: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in names}
    matches = get_close_matches(text.lower(), by_lower, 1)
    return by_lower[matches[0]] if matches else None


def _describe(each: Named) -> str:
    more = each.get("phase") or f"made {each['created_at']}"
    return f"{each['id']}  {more}  {each.get('description') or ''}".rstrip()
