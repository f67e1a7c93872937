"""Shared ports: who may open them, until when, and what administrators allow."""

from datetime import timedelta

import pytest

from codehub.domain.port_shares import (
    DEFAULT_LIFETIME,
    MOST_SHARES,
    Audience,
    PortShare,
    ShareRefused,
    Sharing,
    SharingRules,
    add_share,
    audience_of,
    is_shareable,
    parse,
    remove_share,
    serialize,
    shares_in_force,
)
from tests.unit.domain.builders import NOW

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
USERS = PortShare(Audience.USERS, NOW)
PUBLIC = PortShare(Audience.PUBLIC, NOW, NOW + HOUR)


def test_a_port_that_is_not_shared_is_the_owners_alone() -> None:
    assert audience_of({3000: USERS}, 3001, NOW) is None


def test_a_share_ends_in_the_moment_of_its_expiry() -> None:
    shares = {3000: PUBLIC}
    assert audience_of(shares, 3000, NOW + HOUR - SECOND) is Audience.PUBLIC
    assert audience_of(shares, 3000, NOW + HOUR) is None


def test_a_share_without_expiry_lasts() -> None:
    assert audience_of({3000: USERS}, 3000, NOW + timedelta(days=1000)) is Audience.USERS


@pytest.mark.parametrize(
    ("sharing", "audience", "left"),
    [
        (Sharing.PUBLIC, Audience.PUBLIC, Audience.PUBLIC),
        (Sharing.PUBLIC, Audience.USERS, Audience.USERS),
        (Sharing.USERS, Audience.PUBLIC, Audience.USERS),
        (Sharing.USERS, Audience.USERS, Audience.USERS),
        (Sharing.NONE, Audience.PUBLIC, None),
        (Sharing.NONE, Audience.USERS, None),
    ],
)
def test_what_administrators_allow_now_limits_what_was_shared_before(
    sharing: Sharing, audience: Audience, left: Audience | None
) -> None:
    shares = {3000: PortShare(audience, NOW)}
    assert audience_of(shares, 3000, NOW, sharing) is left
    listed = shares_in_force(shares, NOW, sharing)
    assert listed == ({3000: PortShare(left, NOW)} if left else {})


def test_shares_in_force_are_listed_by_port_without_expired_ones() -> None:
    shares = {8000: USERS, 3000: USERS, 5000: PUBLIC}
    assert list(shares_in_force(shares, NOW + HOUR)) == [3000, 8000]


@pytest.mark.parametrize("port", [-1, 0, 3128, 65536])
def test_ports_that_are_none_or_ours_cannot_be_shared(port: int) -> None:
    assert not is_shareable(port)
    with pytest.raises(ShareRefused, match="choose another from 1 to 65535"):
        add_share({}, port, USERS)


@pytest.mark.parametrize("port", [1, 80, 3127, 3129, 65535])
def test_every_other_port_can_be_shared(port: int) -> None:
    assert is_shareable(port)
    assert add_share({}, port, USERS) == {port: USERS}


def test_sharing_again_replaces_and_drops_what_has_expired() -> None:
    later = PortShare(Audience.USERS, NOW + HOUR)
    assert add_share({3000: USERS, 5000: PUBLIC}, 3000, later) == {3000: later}


def test_the_number_of_shares_is_limited() -> None:
    full = dict.fromkeys(range(1, MOST_SHARES + 1), USERS)
    with pytest.raises(ShareRefused, match="stop sharing one first"):
        add_share(full, 9000, USERS)
    assert add_share(full, 1, PUBLIC)[1] == PUBLIC
    assert remove_share(full, 1).keys() == full.keys() - {1}


@pytest.mark.parametrize(
    ("rules", "audience", "lifetime", "message"),
    [
        (SharingRules(Sharing.NONE), Audience.USERS, HOUR, "cannot be shared here"),
        (SharingRules(Sharing.USERS), Audience.PUBLIC, HOUR, "with signed-in users only"),
        (SharingRules(Sharing.PUBLIC, HOUR), Audience.PUBLIC, HOUR + SECOND, "at most 3600 seconds"),
        (SharingRules(Sharing.PUBLIC, HOUR), Audience.USERS, None, "choose an expiry"),
    ],
)
def test_what_administrators_do_not_allow_is_refused(
    rules: SharingRules, audience: Audience, lifetime: timedelta | None, message: str
) -> None:
    with pytest.raises(ShareRefused, match=message):
        rules.check(audience, lifetime)


def test_what_administrators_allow_passes() -> None:
    SharingRules(Sharing.USERS).check(Audience.USERS, None)
    SharingRules(Sharing.PUBLIC, HOUR).check(Audience.PUBLIC, HOUR)


def test_the_default_lifetime_keeps_to_the_longest() -> None:
    assert SharingRules().default_lifetime == DEFAULT_LIFETIME
    assert SharingRules(longest=HOUR).default_lifetime == HOUR
    assert SharingRules(longest=timedelta(days=9)).default_lifetime == DEFAULT_LIFETIME


def test_shares_are_stored_and_read_back() -> None:
    shares = {8000: USERS, 3000: PUBLIC}
    assert parse(serialize(shares)) == shares
    assert serialize({3000: PUBLIC}) == {
        "3000": {
            "audience": "public",
            "created_at": NOW.isoformat(),
            "expires_at": (NOW + HOUR).isoformat(),
        }
    }


def test_an_unknown_audience_lets_nobody_in() -> None:
    stored = serialize({3000: PUBLIC, 8000: USERS})
    stored["3000"]["audience"] = "friends"
    assert parse(stored) == {8000: USERS}
