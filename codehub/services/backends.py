"""A backend sees only its own homes: it must not judge workspaces of another, whose homes it calls lost."""

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.backends import backends_in_use


class OtherBackend(Exception):
    """There are workspaces whose homes the configured backend does not have; the message is for a person."""


async def require_backend(session: AsyncSession, configured: str) -> None:
    """Raise OtherBackend unless every workspace that is not deleted is of this backend."""
    in_use = await backends_in_use(session)
    if not in_use <= {configured}:
        raise OtherBackend(_explain(in_use, configured))


def _explain(in_use: set[str], configured: str) -> str:
    others = sorted(in_use - {configured})
    remedy = (
        f"set CODEHUB_WORKSPACES_INSTANCE_BACKEND={others[0]}"
        if in_use == set(others[:1])
        else "use a database for each backend"
    )
    return (
        f"The database holds workspaces of the backend {' and '.join(others)}, but CodeHub is set to run "
        f"{configured}, which does not have their homes: {remedy}, or delete those workspaces first."
    )
