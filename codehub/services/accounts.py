"""The accounts that exist before anybody can sign in."""

import secrets
import uuid

from argon2 import PasswordHasher
from sqlalchemy import exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import User

ADMIN_NAME = "admin"
ADMIN_ROLE = "admin"
PASSWORD_BYTES = 15


async def ensure_admin(session: AsyncSession) -> str | None:
    """Create the first administrator and return its password, which is kept nowhere; None if there is one."""
    if await session.scalar(select(exists().where(User.role == ADMIN_ROLE))):
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    account = insert(User).values(
        id=uuid.uuid4(),
        username=ADMIN_NAME,
        # argon2id, with the parameters that its authors recommend.
        password_hash=PasswordHasher().hash(password),
        role=ADMIN_ROLE,
    )
    # Another `codehub up` on the same database may have been quicker.
    created = await session.scalar(account.on_conflict_do_nothing().returning(User.id))
    return password if created else None
