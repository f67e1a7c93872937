"""Signing in and out, and finding the user of a session or a token."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import (
    Account,
    Role,
    find_account,
    load_account,
    replace_password_hash,
    set_password_hash,
)
from codehub.db.credentials import (
    Holder,
    SessionView,
    confirm_session,
    delete_ended_sessions,
    insert_session,
    revoke_sessions,
    revoke_tokens,
    use_session,
    use_token,
)
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.lockout import PLACE, throttles_of
from codehub.domain.scopes import ALL_SCOPES, Scope
from codehub.services.audit import UNKNOWN, Action, Actor, record
from codehub.services.credentials import API_TOKEN_PREFIX, hash_token, new_session_token
from codehub.services.errors import SignInRefused, WrongPassword
from codehub.services.lockout import Throttles, find_place, remember_place
from codehub.services.passwords import (
    PasswordAttempt,
    Passwords,
    SecondFactor,
    check_password_rules,
    refuse_unknown_user,
    try_password,
)

MAX_USER_AGENT_LENGTH = 512


class Credential(StrEnum):
    """What a caller authenticates with."""

    SESSION = "session"
    TOKEN = "token"  # noqa: S105


@dataclass(frozen=True)
class Caller:
    """An authenticated user, and the credential that was used."""

    user_id: UUID
    username: str
    role: str
    credential: Credential
    credential_id: UUID
    expires_at: datetime | None
    # When the password was last entered; None for a token.
    confirmed_at: datetime | None = None
    # A session has all rights of its user; a token may be limited to scopes and workspaces.
    scopes: frozenset[Scope] = ALL_SCOPES
    workspace_ids: frozenset[str] | None = None

    @property
    def belongs_to_admin(self) -> bool:
        return self.role == Role.ADMIN

    @property
    def is_admin(self) -> bool:
        """Whether this credential may act as an administrator."""
        return self.belongs_to_admin and Scope.ADMIN in self.scopes

    def may_use(self, workspace_id: WorkspaceId) -> bool:
        """Return whether the credential is valid for this workspace, regardless of its owner."""
        return self.workspace_ids is None or workspace_id in self.workspace_ids

    def may_enter(self, workspace_id: WorkspaceId, owner_user_id: UUID) -> bool:
        is_own = self.user_id == owner_user_id and self.may_use(workspace_id)
        return is_own and Scope.WORKSPACES in self.scopes


@dataclass(frozen=True)
class SessionTimes:
    """How long a new session lasts, in total and without use."""

    lifetime: timedelta
    idle_timeout: timedelta | None = None


@dataclass(frozen=True)
class SignInClient:
    """Where a sign-in comes from."""

    address: str | None = None
    user_agent: str | None = None
    # The device cookie, which only protects this device from lockouts caused by others.
    device: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SignedIn:
    """A new session; its token goes into the cookie and is not stored."""

    caller: Caller
    token: str = field(repr=False)
    # The value for the device cookie; None if it is not set.
    device: str | None = field(default=None, repr=False)


async def sign_in(
    database: Database,
    passwords: Passwords,
    username: str,
    password: str,
    *,
    admins_only: bool = False,
    second_factor: SecondFactor | None = None,
    times: SessionTimes,
    client: SignInClient,
    now: datetime,
) -> SignedIn:
    """Open a session; raise SignInRefused or LockedOut, which do not reveal whether the user exists.

    With `admins_only`, everyone else gets the same response as an unknown user.
    """
    async with database.transaction() as session:
        account = await find_account(session, username)
    if account is not None and admins_only and account.role != Role.ADMIN:
        account = None
    user_id = None if account is None else account.user_id
    place = await find_place(database, user_id, username, client.address, client.device, now=now)
    by = Actor(UNKNOWN, address=client.address) if account is None else actor_of(account, client.address)
    attempt = PasswordAttempt(Action.SIGN_IN, by, now, throttles_of(place), second_factor)
    if account is None:
        await refuse_unknown_user(database, passwords, password, attempt)
    token = new_session_token()
    # A device that is unknown to this account gets a new secret, so a planted one is worthless.
    client = replace(client, device=client.device if place.known_device else new_session_token())

    async def accept(session: AsyncSession, account: Account) -> Caller:
        return await open_session(session, account, token, times=times, client=client, now=now)

    caller = await try_password(database, passwords, account, password, accept, attempt=attempt)
    await _renew_hash(database, passwords, account, password)
    return SignedIn(caller, token, client.device)


async def open_session(
    session: AsyncSession,
    account: Account,
    token: str,
    *,
    times: SessionTimes,
    client: SignInClient,
    now: datetime,
) -> Caller:
    """Insert a session with this token for an authenticated user."""
    new = SessionView(uuid4(), now, now + times.lifetime, now, _truncate(client.user_agent))
    await delete_ended_sessions(session, account.user_id, now)
    await insert_session(session, account.user_id, new, hash_token(token), times.idle_timeout)
    await remember_place(session, account.user_id, client.address, client.device, now)
    await record(session, Action.SIGN_IN, now, by=actor_of(account, client.address), target_id=new.id)
    return Caller(
        account.user_id, account.username, account.role, Credential.SESSION, new.id, new.expires_at, now
    )


async def sign_out(database: Database, session_id: UUID, *, by: Actor, now: datetime) -> None:
    """End the session; do nothing if it has ended already."""
    async with database.transaction() as session:
        if await revoke_sessions(session, now, session_id=session_id):
            await record(session, Action.SIGN_OUT, now, by=by, target_id=session_id)


async def find_session(database: Database, token: str, *, now: datetime) -> Caller | None:
    """Return the user of the cookie; None if it is unknown, expired or revoked, or the user disabled."""
    async with database.transaction() as session:
        holder = await use_session(session, hash_token(token), now)
    return caller_of(holder, Credential.SESSION)


async def find_token(database: Database, token: str, *, now: datetime) -> Caller | None:
    """Return the user of the token; None if it is unknown, expired or revoked, or the user disabled."""
    if not token.startswith(API_TOKEN_PREFIX):
        return None
    async with database.transaction() as session:
        holder = await use_token(session, hash_token(token), now)
    return caller_of(holder, Credential.TOKEN)


async def confirm_password(
    database: Database, passwords: Passwords, caller: Caller, password: str, *, by: Actor, now: datetime
) -> None:
    """Record that the user of this session entered the password; a wrong one counts as a failure."""

    async def confirm(session: AsyncSession, _account: Account) -> None:
        await confirm_session(session, caller.credential_id, now)
        await record(session, Action.PASSWORD_CONFIRM, now, by=by)

    attempt = PasswordAttempt(Action.PASSWORD_CONFIRM, by, now, _throttles_of(caller))
    await _try_own_password(database, passwords, caller, password, confirm, attempt=attempt)


async def change_password(
    database: Database,
    passwords: Passwords,
    caller: Caller,
    current: str,
    new: str,
    *,
    by: Actor,
    now: datetime,
) -> None:
    """Set the caller's password; end the other sessions and all tokens. A wrong one counts as a failure."""
    check_password_rules(new)
    new_hash = await passwords.hash(new)
    own = caller.credential_id if caller.credential is Credential.SESSION else None

    async def set_new(session: AsyncSession, account: Account) -> None:
        await set_password_hash(session, account.user_id, new_hash)
        await revoke_sessions(session, now, user_id=account.user_id, excluding=own)
        await revoke_tokens(session, now, user_id=account.user_id)
        await record(session, Action.PASSWORD_CHANGE, now, by=by)

    attempt = PasswordAttempt(Action.PASSWORD_CHANGE, by, now, _throttles_of(caller))
    await _try_own_password(database, passwords, caller, current, set_new, attempt=attempt)


async def _try_own_password(
    database: Database,
    passwords: Passwords,
    caller: Caller,
    password: str,
    accepted: Callable[[AsyncSession, Account], Awaitable[None]],
    *,
    attempt: PasswordAttempt,
) -> None:
    """Check the password of a signed-in user; raise WrongPassword or LockedOut."""
    async with database.transaction() as session:
        account = await load_account(session, caller.user_id)
    if account is None:
        raise WrongPassword
    try:
        await try_password(database, passwords, account, password, accepted, attempt=attempt)
    except SignInRefused as refusal:
        raise WrongPassword from refusal


def _throttles_of(caller: Caller) -> Throttles:
    """Count per session or token, so that a stolen one locks out only itself."""
    return {f"credential {caller.credential_id}": PLACE}


async def _renew_hash(database: Database, passwords: Passwords, account: Account, password: str) -> None:
    """Hash the password with the current parameters if its hash has older ones."""
    if passwords.is_outdated(account.password_hash):
        renewed = await passwords.hash(password)
        async with database.transaction() as session:
            await replace_password_hash(session, account.user_id, account.password_hash, renewed)


def actor_of(account: Account, address: str | None) -> Actor:
    return Actor(account.username, account.user_id, address)


def caller_of(holder: Holder | None, credential: Credential) -> Caller | None:
    if holder is None:
        return None
    return Caller(
        user_id=holder.user_id,
        username=holder.username,
        role=holder.role,
        credential=credential,
        credential_id=holder.credential_id,
        expires_at=holder.expires_at,
        confirmed_at=holder.confirmed_at,
        scopes=ALL_SCOPES if holder.scopes is None else frozenset(map(Scope, holder.scopes)),
        workspace_ids=None if holder.workspace_ids is None else frozenset(map(str, holder.workspace_ids)),
    )


def _truncate(user_agent: str | None) -> str | None:
    # The header may contain anything; PostgreSQL does not accept NUL.
    return user_agent and user_agent.replace("\0", "")[:MAX_USER_AGENT_LENGTH]
