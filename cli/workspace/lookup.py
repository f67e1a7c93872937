"""Find a workspace by its name or id."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from cli.client import Client
from cli.errors import CommandError, ExitCode
from cli.words import phase_label

Named = dict[str, Any]
MAX_SEARCH_LENGTH = 100


def find_workspace(client: Client, text: str) -> Named:
    """Return the workspace with this id, or the caller's only workspace with this name."""
    if is_id(text):
        found: Named = client.get(f"/workspaces/{text}")
        return found
    return find_by_name(text, _search(client, text), "workspace", "codehub ws ls")


def find_deleted(client: Client, text: str) -> str:
    """Return the id of a deleted workspace; the API has no endpoint for a single one."""
    if is_id(text):
        return text
    found = client.items("/workspaces", q=text[:MAX_SEARCH_LENGTH])
    deleting = [each for each in found if each["deleted_at"]]
    if any(each["name"] == text for each in deleting):
        return str(find_by_name(text, deleting, "deleted workspace", "codehub ws ls")["id"])
    deleted = _search(client, text, deleted=True)
    # Ignore purged workspaces if another one of the same name can be undeleted.
    deleted = [each for each in deleted if each["undelete_until"]] or deleted
    return str(find_by_name(text, deleted, "deleted workspace", "codehub ws ls --deleted")["id"])


def find_by_name(text: str, candidates: Iterable[Named], kind: str, list_command: str) -> Named:
    """Return the only candidate with this name."""
    known = list(candidates)
    found = [each for each in known if each["name"] == text]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(
            f"There are {len(found)} with the name {text}. Use an id instead:",
            code=ExitCode.USAGE,
            details=[_describe(each) for each in found],
        )
    similar = _find_similar(text, [str(each["name"]) for each in known])
    suggestion = f" Did you mean {similar}?" if similar else ""
    raise CommandError(
        f"There is no {kind} named {text}.{suggestion}",
        f"List them with: {list_command}",
        code=ExitCode.NOT_FOUND,
    )


def is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _search(client: Client, text: str, *, deleted: bool = False) -> list[Named]:
    """Return the workspaces whose name contains the text, or all of them for a suggestion."""
    found = list(client.items("/workspaces", q=text[:MAX_SEARCH_LENGTH], deleted=deleted))
    if any(each["name"] == text for each in found):
        return found
    return list(client.items("/workspaces", deleted=deleted))


def _find_similar(text: str, names: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in names}
    matches = get_close_matches(text.lower(), by_lower, 1)
    return by_lower[matches[0]] if matches else None


def _describe(each: Named) -> str:
    state = phase_label(each["phase"]) if "phase" in each else f"created {each['created_at']}"
    return f"{each['id']}  {state}  {each.get('description') or ''}".rstrip()
