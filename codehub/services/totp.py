"""The second factor of local accounts: one-time codes from an authenticator app, and recovery codes."""

import hashlib
import hmac
import secrets
from base64 import b32encode
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import pyotp
import segno
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, load_account, lock_account
from codehub.db.authenticators import (
    AuthenticatorRow,
    count_recovery_codes,
    delete_authenticator,
    enable_authenticator,
    load_authenticator,
    lock_authenticator,
    replace_authenticator,
    replace_recovery_codes,
    use_recovery_code,
    use_step,
)
from codehub.db.session import Database
from codehub.domain.one_time_codes import acceptable_steps
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import (
    AuthenticatorEnabled,
    NoAuthenticator,
    NoPassword,
    RequestRefused,
    SecondFactorRequired,
    SecondFactorWrong,
    UserNotFound,
    WrongCode,
)
from codehub.services.passwords import NO_PASSWORD, SecondFactor

ISSUER = "CodeHub"
RECOVERY_CODES = 10
# 80 bits, written as four groups of four letters and digits.
RECOVERY_CODE_BYTES = 10
GROUP_LENGTH = 4
QUIET_ZONE = 4


@dataclass(frozen=True)
class AuthenticatorStatus:
    """The second factor of one user; `available` is false for accounts without a password."""

    available: bool
    enabled_at: datetime | None
    recovery_codes_left: int


@dataclass(frozen=True)
class QrCode:
    """A QR code as an SVG path on a square of `size`, with its quiet zone."""

    size: int
    path: str = field(repr=False)


@dataclass(frozen=True)
class Enrollment:
    """What an authenticator app needs: the secret as text, as a URI, and as a QR code of that."""

    secret: str = field(repr=False)
    uri: str = field(repr=False)
    qr_code: QrCode


def second_factor(code: str | None, now: datetime) -> SecondFactor:
    """Return the check that follows the password check; a wrong code counts like a wrong password."""

    async def check(session: AsyncSession, account: Account) -> RequestRefused | None:
        row = await lock_authenticator(session, account.user_id)
        if row is None or row.enabled_at is None:
            return None
        if not code:
            return SecondFactorRequired()
        return None if await _accepts(session, account.user_id, row, code, now) else SecondFactorWrong()

    return check


async def read_status(database: Database, user_id: UUID) -> AuthenticatorStatus:
    async with database.transaction() as session:
        account = await load_account(session, user_id)
        row = await load_authenticator(session, user_id)
        left = await count_recovery_codes(session, user_id)
    available = account is not None and account.password_hash != NO_PASSWORD
    return AuthenticatorStatus(available, row.enabled_at if row else None, left)


async def is_protected(database: Database, user_id: UUID) -> bool:
    """Return whether this user needs more than a password to sign in."""
    status = await read_status(database, user_id)
    return not status.available or status.enabled_at is not None


async def enroll(database: Database, user_id: UUID, *, now: datetime) -> Enrollment:
    """Create a secret for an app, which `enable` activates."""
    secret = pyotp.random_base32()
    async with database.transaction() as session:
        account = await lock_account(session, user_id)
        if account is None or account.password_hash == NO_PASSWORD:
            raise NoPassword
        row = await lock_authenticator(session, user_id)
        if row is not None and row.enabled_at is not None:
            raise AuthenticatorEnabled
        await replace_authenticator(session, user_id, secret, now)
    uri = pyotp.TOTP(secret).provisioning_uri(account.username, ISSUER)
    return Enrollment(secret, uri, draw_qr_code(uri))


async def enable(database: Database, user_id: UUID, code: str, *, by: Actor, now: datetime) -> list[str]:
    """Activate the enrolled app with one of its codes; return recovery codes, stored only as hashes."""
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    async with database.transaction() as session:
        row = await lock_authenticator(session, user_id)
        if row is None:
            raise NoAuthenticator
        if row.enabled_at is not None:
            raise AuthenticatorEnabled
        if not await _accepts_step(session, user_id, row, code, now):
            raise WrongCode
        await enable_authenticator(session, user_id, now)
        await replace_recovery_codes(session, user_id, [_hash(user_id, each) for each in codes])
        await record(session, Action.AUTHENTICATOR_ADD, now, by=by)
    return codes


async def disable(database: Database, user_id: UUID, *, by: Actor, now: datetime) -> None:
    """Remove the app and the recovery codes; do nothing if there is no app."""
    async with database.transaction() as session:
        if await delete_authenticator(session, user_id):
            await record(session, Action.AUTHENTICATOR_REMOVE, now, by=by)


async def reset(database: Database, user_id: UUID, *, by: Actor, now: datetime) -> bool:
    """Remove the app of a user who has lost it; return whether there was one."""
    async with database.transaction() as session:
        account = await load_account(session, user_id)
        if account is None:
            raise UserNotFound
        removed = await delete_authenticator(session, user_id)
        if removed:
            name = account.username
            await record(session, Action.USER_AUTHENTICATOR, now, by=by, target=name, target_id=user_id)
    return removed


def draw_qr_code(text: str) -> QrCode:
    rows = [bytes(row) for row in segno.make(text, error="m", micro=False).matrix]
    dark = [(x, y) for y, row in enumerate(rows) for x, module in enumerate(row) if module]
    path = "".join(f"M{x + QUIET_ZONE} {y + QUIET_ZONE}h1v1h-1z" for x, y in dark)
    return QrCode(len(rows) + 2 * QUIET_ZONE, path)


async def _accepts(
    session: AsyncSession, user_id: UUID, row: AuthenticatorRow, code: str, now: datetime
) -> bool:
    if await _accepts_step(session, user_id, row, code, now):
        return True
    return await use_recovery_code(session, user_id, _hash(user_id, code))


async def _accepts_step(
    session: AsyncSession, user_id: UUID, row: AuthenticatorRow, code: str, now: datetime
) -> bool:
    """Use up the code's time step, so that the code cannot be used again."""
    app = pyotp.TOTP(row.secret)
    typed = _normalize(code).encode(errors="surrogatepass")
    for step in acceptable_steps(now, row.last_step):
        if hmac.compare_digest(app.generate_otp(step).encode(), typed):
            await use_step(session, user_id, step)
            return True
    return False


def _new_recovery_code() -> str:
    text = b32encode(secrets.token_bytes(RECOVERY_CODE_BYTES)).decode().lower()
    return "-".join(text[start : start + GROUP_LENGTH] for start in range(0, len(text), GROUP_LENGTH))


def _hash(user_id: UUID, code: str) -> bytes:
    """Hash without stretching: 80 random bits cannot be guessed."""
    return hashlib.sha256(user_id.bytes + _normalize(code).encode(errors="surrogatepass")).digest()


def _normalize(code: str) -> str:
    """Remove spaces, hyphens and case, which apps and people add."""
    return "".join(character for character in code.lower() if character.isalnum())
