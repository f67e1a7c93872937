"""Ten thousand workspaces of many users, as the API benchmarks need them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import text, update

from benchmarks.scale.parked import ARCHIVED, STANDBY, add_parked
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.services.credentials import create_token
from testkit.deployment import Deployment
from testkit.rows import BY, add_user


@dataclass(frozen=True, eq=False)
class ApiUser:
    """A user with a token and workspaces."""

    user_id: UUID
    token: str
    workspaces: Sequence[WorkspaceId]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}


@dataclass(frozen=True)
class Population:
    """The user who sends requests, an administrator, and all others."""

    caller: ApiUser
    admin: ApiUser
    others: Sequence[ApiUser]


async def populate(deployment: Deployment, workspaces: int, of_the_caller: int, others: int) -> Population:
    """Add workspaces, half in STANDBY and half ARCHIVED; the other users get equal shares."""
    ids = [
        *await add_parked(deployment, workspaces // 2, STANDBY),
        *await add_parked(deployment, workspaces - workspaces // 2, ARCHIVED),
    ]
    random.Random(len(ids)).shuffle(ids)  # noqa: S311 (the same in every run)
    caller = await _add_user(deployment, ids[:of_the_caller])
    rest = ids[of_the_caller:]
    other_users = [await _add_user(deployment, rest[number::others]) for number in range(others)]
    admin = await _add_user(deployment, [])
    async with deployment.database.transaction() as session:
        await session.execute(text("UPDATE users SET role = 'admin' WHERE id = :id"), {"id": admin.user_id})
        # Without scopes it may do all that its owner may.
        everything = "UPDATE api_tokens SET scopes = NULL WHERE user_id = :id"
        await session.execute(text(everything), {"id": admin.user_id})
        await session.execute(text("ANALYZE workspaces"))
    return Population(caller, admin, other_users)


async def _add_user(deployment: Deployment, workspaces: Sequence[WorkspaceId]) -> ApiUser:
    """Add a user with a token and give them these workspaces, without triggering notifications."""
    async with deployment.database.transaction() as session:
        user_id = await add_user(session)
        await session.execute(text("SET LOCAL session_replication_role = replica"))
        await session.execute(
            update(Workspace)
            .where(Workspace.id.in_([UUID(each) for each in workspaces]))
            .values(owner_user_id=user_id)
        )
    created = await create_token(
        deployment.database, user_id, "benchmark", expires_at=None, by=BY, now=datetime.now(UTC)
    )
    return ApiUser(user_id, created.token, workspaces)
