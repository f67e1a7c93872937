"""Names of workspaces for the shell's completion: nothing where they cannot be had soon."""

from cli.errors import Failed

PATIENCE_SECONDS = 2.0


def complete_workspaces(incomplete: str) -> list[str]:
    return _names(incomplete, deleted=False)


def complete_deleted(incomplete: str) -> list[str]:
    return _names(incomplete, deleted=True)


def _names(incomplete: str, *, deleted: bool) -> list[str]:
    # Here, because every command defines completions and few complete anything.
    from cli.client import connect  # noqa: PLC0415

    try:
        with connect(None) as client:
            client.limit_patience(PATIENCE_SECONDS)
            found = client.get("/workspaces", q=incomplete, deleted=deleted, limit=200)["items"]
    except Failed:
        return []
    return sorted({each["name"] for each in found if each["name"].startswith(incomplete)})
