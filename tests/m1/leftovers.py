"""M1's database (database.sql) and its directory of homes."""

from pathlib import Path
from uuid import UUID

from codehub.db.session import connect
from codehub.domain.conditions import WorkspaceId
from testkit.trees import make_rich_home

SCRIPT = Path(__file__).with_name("database.sql").read_text()
ANN = UUID("11111111-1111-4111-8111-111111111111")
BOB = UUID("22222222-2222-4222-8222-222222222222")
COOKIE = UUID("33333333-3333-4333-8333-333333333333")
STATUSES = ("CREATED", "PROVISIONING", "RUNNING", "STOPPING", "STOPPED", "DELETING", "ERROR", "DELETED")
IDS = {
    status: WorkspaceId(f"a0000000-0000-4000-8000-{number:012}")
    for number, status in enumerate(STATUSES, start=1)
}
OWNERS = dict.fromkeys(STATUSES[:4], ANN) | dict.fromkeys(STATUSES[4:], BOB)
# M1 creates the directory when it provisions, and removes it when it deletes.
WITH_HOMES = ("PROVISIONING", "RUNNING", "STOPPING", "STOPPED", "DELETING", "ERROR")

RICH = ("RUNNING", "STOPPED")


async def fill_database(url: str, *more: str) -> None:
    """Create M1's tables and rows; `more` are statements for variants of M1."""
    connection = await connect(url)
    try:
        await connection.execute(SCRIPT)
        for statement in more:
            await connection.execute(statement)
    finally:
        await connection.close()


def home_key(status: str) -> str:
    return f"users/{OWNERS[status]}/workspaces/{IDS[status]}/home"


def make_homes(directory: Path) -> dict[str, Path]:
    """Make homes where M1 keeps them, two of them with every kind of entry."""
    homes = {status: directory / home_key(status) for status in WITH_HOMES}
    for status, home in homes.items():
        home.mkdir(parents=True)
        (home / "notes.txt").write_text(f"{status} in M1")
        if status in RICH:
            make_rich_home(home)
    return homes
