"""Signing in through an identity provider: begin in one browser, complete once in the same browser."""

import hashlib
import logging
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, Role, insert_account, lock_account, update_account
from codehub.db.credentials import confirm_session
from codehub.db.session import Database
from codehub.db.single_sign_on import (
    Attempt,
    delete_expired_attempts,
    find_identity,
    insert_attempt,
    lock_identity,
    record_identity,
    take_attempt,
)
from codehub.domain.single_sign_on import (
    GroupRules,
    SignInProblem,
    is_admin,
    may_sign_in,
    username_candidates,
)
from codehub.ports import (
    IdentityProvider,
    IdentityRejected,
    ProvenIdentity,
    ProviderUnavailable,
    SignInSecrets,
)
from codehub.services.audit import SYSTEM, UNKNOWN, Action, Actor, Outcome, record
from codehub.services.credentials import hash_token, new_session_token
from codehub.services.identity import SessionTimes, SignedIn, SignInClient, open_session
from codehub.services.passwords import NO_PASSWORD

log = logging.getLogger(__name__)

# Leaves time for a second factor at the provider.
ATTEMPT_LIFETIME = timedelta(minutes=10)
SECRET_BYTES = 32
UNIQUE_PART_LENGTH = 10
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class SingleSignOnFailed(Exception):
    """A sign-in through the provider failed; the sign-in page explains the problem."""

    def __init__(self, problem: SignInProblem, next_path: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.next_path = next_path


class _Failed(Exception):
    """A sign-in that cannot be completed, for a known reason."""

    def __init__(self, problem: SignInProblem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class SingleSignOn:
    """The identity provider, its name on the sign-in page, and the groups that may sign in."""

    provider: IdentityProvider
    issuer: str
    name: str
    rules: GroupRules


@dataclass(frozen=True)
class Begun:
    """Where to send the browser, and the secret for its cookie."""

    url: str
    browser: str = field(repr=False)


@dataclass(frozen=True)
class ProviderResponse:
    """The parameters of the callback. They are untrusted, and each may be empty."""

    state: str = field(repr=False)
    code: str = field(repr=False)
    error: str
    issuer: str


@dataclass(frozen=True)
class Completed:
    """A new session, and the page to open with it."""

    signed_in: SignedIn
    next_path: str


async def begin(
    database: Database, provider: IdentityProvider, next_path: str, *, fresh: bool, now: datetime
) -> Begun:
    """Start a sign-in; raise ProviderUnavailable during an outage.

    With `fresh`, the person must authenticate again at the provider, in place of a password entry.
    """
    browser, state, nonce, verifier = (secrets.token_urlsafe(SECRET_BYTES) for _ in range(4))
    url = await provider.authorization_url(SignInSecrets(state, nonce, verifier), fresh=fresh)
    attempt = Attempt(nonce, verifier, next_path, fresh, now + ATTEMPT_LIFETIME)
    async with database.transaction() as session:
        await delete_expired_attempts(session, now)
        await insert_attempt(session, attempt, state_hash=hash_token(state), browser_hash=hash_token(browser))
    return Begun(url, browser)


async def complete(
    database: Database,
    single_sign_on: SingleSignOn,
    response: ProviderResponse,
    browser: str,
    *,
    times: SessionTimes,
    client: SignInClient,
    now: datetime,
) -> Completed:
    """Open a session for the person that the provider has authenticated; raise SingleSignOnFailed."""
    attempt = await _take(database, response.state, browser, now)
    try:
        identity = await _redeem(single_sign_on, response, attempt)
        token = new_session_token()
        async with database.transaction() as session:
            account = await _admit(session, identity, single_sign_on.rules, now)
            caller = await open_session(session, account, token, times=times, client=client, now=now)
            # An old session at the provider can sign in without asking the person anything.
            confirmed_at = min(identity.authenticated_at or LONG_AGO, now)
            await confirm_session(session, caller.credential_id, confirmed_at)
    except _Failed as failed:
        await _record_failure(database, failed.problem, client, now)
        raise SingleSignOnFailed(failed.problem, attempt.next_path) from failed
    return Completed(SignedIn(caller, token), attempt.next_path)


async def _record_failure(
    database: Database, problem: SignInProblem, client: SignInClient, now: datetime
) -> None:
    by = Actor(UNKNOWN, address=client.address)
    async with database.transaction() as session:
        await record(
            session, Action.SIGN_IN, now, by=by, outcome=Outcome.FAILURE, detail={"problem": problem}
        )


async def _take(database: Database, state: str, browser: str, now: datetime) -> Attempt:
    """Return the sign-in that this browser began, and delete it.

    A replayed response, or one for another browser's sign-in (login CSRF), is rejected here.
    """
    async with database.transaction() as session:
        attempt = await take_attempt(
            session, state_hash=hash_token(state), browser_hash=hash_token(browser), now=now
        )
    if attempt is None:
        raise SingleSignOnFailed(SignInProblem.EXPIRED, "/")
    return attempt


async def _redeem(
    single_sign_on: SingleSignOn, response: ProviderResponse, attempt: Attempt
) -> ProvenIdentity:
    if response.issuer and response.issuer != single_sign_on.issuer:
        log.warning("rejected a response of another issuer")
        raise _Failed(SignInProblem.REJECTED)
    if response.error or not response.code:
        raise _Failed(SignInProblem.REFUSED)
    expected = SignInSecrets(response.state, attempt.nonce, attempt.verifier)
    try:
        return await single_sign_on.provider.redeem(response.code, expected, fresh=attempt.fresh)
    except ProviderUnavailable as error:
        log.warning("the identity provider is unavailable: %s", error)
        raise _Failed(SignInProblem.UNAVAILABLE) from error
    except IdentityRejected as error:
        log.warning("rejected a sign-in through the identity provider: %s", error)
        raise _Failed(SignInProblem.REJECTED) from error


async def _admit(
    session: AsyncSession, identity: ProvenIdentity, rules: GroupRules, now: datetime
) -> Account:
    if not may_sign_in(rules, identity.groups):
        raise _Failed(SignInProblem.NOT_ALLOWED)
    account = await _account_of(session, identity, now)
    if account.disabled_at is not None:
        raise _Failed(SignInProblem.DISABLED)
    return await _apply_groups(session, account, identity, rules, now)


async def _account_of(session: AsyncSession, identity: ProvenIdentity, now: datetime) -> Account:
    """Return the account of the identity; create it on the first sign-in.

    Only issuer and subject identify it: names and e-mail addresses can be reassigned.
    """
    await lock_identity(session, identity.issuer, identity.subject)
    user_id = await find_identity(session, identity.issuer, identity.subject)
    account = None if user_id is None else await lock_account(session, user_id)
    if account is None:
        account = await _create_account(session, identity, now)
    await record_identity(session, identity.issuer, identity.subject, account.user_id, now)
    return account


async def _create_account(session: AsyncSession, identity: ProvenIdentity, now: datetime) -> Account:
    unique = hashlib.sha256(f"{identity.issuer} {identity.subject}".encode()).hexdigest()
    for name in username_candidates(identity.username, unique[:UNIQUE_PART_LENGTH]):
        account = await insert_account(session, name, NO_PASSWORD, Role.USER, now)
        if account is not None:
            await record(
                session,
                Action.USER_ADD,
                now,
                by=SYSTEM,
                target=account.username,
                target_id=account.user_id,
                detail={"role": account.role, "issuer": identity.issuer},
            )
            return account
    raise _Failed(SignInProblem.REJECTED)


async def _apply_groups(
    session: AsyncSession, account: Account, identity: ProvenIdentity, rules: GroupRules, now: datetime
) -> Account:
    """Let the provider's groups decide the role at every sign-in, if the settings say so."""
    admin = is_admin(rules, identity.groups)
    role = account.role if admin is None else Role.ADMIN if admin else Role.USER
    if role == account.role:
        return account
    await record(
        session,
        Action.USER_ROLE,
        now,
        by=SYSTEM,
        target=account.username,
        target_id=account.user_id,
        detail={"role": role, "before": account.role, "issuer": identity.issuer},
    )
    changed = await update_account(session, account.user_id, role=role)
    return changed or account
