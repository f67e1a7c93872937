"""The accounts that exist before anybody can sign in."""

from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Role, has_admin, insert_account
from codehub.services.passwords import Passwords, generate_password

ADMIN_NAME = "admin"


async def ensure_admin(session: AsyncSession) -> str | None:
    """Create the first administrator and return its password, which is kept nowhere; None if there is one."""
    if await has_admin(session):
        return None
    password = generate_password()
    password_hash = await Passwords().hash(password)
    # Another `codehub up` on the same database may have been quicker.
    created = await insert_account(session, ADMIN_NAME, password_hash, Role.ADMIN, datetime.now(UTC))
    return password if created else None
