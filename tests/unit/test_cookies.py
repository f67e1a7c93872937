"""Our cookies are read one way, and what is not ours is removed by name."""

import pytest

from codehub.cookies import MAX_REMOVALS, DuplicateCookie, find_cookie, remove_copies, remove_foreign

NAME = "codehub_session"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("", None),
        ("codehub_session=", None),
        ("codehub_session=a", "a"),
        ("x=1; codehub_session=a;y=2", "a"),
        ("x=1;codehub_session = a=b ", "a=b"),
        ("__Host-codehub_session=a", None),
        ("Codehub_Session=a", None),
        ("xcodehub_session=a; codehub_session=b", "b"),
        # A cookie without a name, whose value is ours.
        ("codehub_session", None),
        ("codehub_session; codehub_session=b", "b"),
    ],
)
def test_a_cookie_is_found_by_its_exact_name(header: str, value: str | None) -> None:
    assert find_cookie(header, NAME) == value


@pytest.mark.parametrize(
    "header",
    [
        "codehub_session=a; codehub_session=b",
        "codehub_session=a; codehub_session=a",
        "codehub_session=; codehub_session=b",
        "codehub_session=a;\tcodehub_session=b",
    ],
)
def test_a_second_cookie_of_this_name_is_an_error(header: str) -> None:
    with pytest.raises(DuplicateCookie):
        find_cookie(header, NAME)


def test_all_copies_but_ours_are_removed() -> None:
    assert remove_copies(NAME, "127.0.0.1:8080", "/") == ["=removed; Max-Age=0; Path=/"]
    assert remove_copies(NAME, "localhost:8080", "/api/v1") == [
        "codehub_session=; Max-Age=0; Path=/api",
        "codehub_session=; Max-Age=0; Path=/api/v1",
        "=removed; Max-Age=0; Path=/",
        "=removed; Max-Age=0; Path=/api",
        "=removed; Max-Age=0; Path=/api/v1",
    ]
    assert remove_copies(NAME, "codehub.example.com", "/") == [
        "codehub_session=; Max-Age=0; Path=/; Domain=codehub.example.com",
        "codehub_session=; Max-Age=0; Path=/; Domain=example.com",
        "=removed; Max-Age=0; Path=/",
        "=removed; Max-Age=0; Path=/; Domain=codehub.example.com",
        "=removed; Max-Age=0; Path=/; Domain=example.com",
    ]


def test_foreign_cookies_are_removed_and_ours_are_kept() -> None:
    header = "evil=1; codehub_session=a; __Host-codehub_workspace=b; bad name=2; __Secure-x=3; evil=4"
    assert remove_foreign(header, "localhost", "/") == [
        "=removed; Max-Age=0; Path=/",
        "evil=; Max-Age=0; Path=/",
        "__Secure-x=; Max-Age=0; Path=/; Secure",
    ]
    many = "; ".join(f"c{number}=x" for number in range(500))
    assert len(remove_foreign(many, "a.example.com", "/x/y")) == MAX_REMOVALS


def test_nothing_of_a_request_ends_up_in_a_header_unless_it_is_a_plain_name() -> None:
    for hostile in ("a\r\nX-Evil: 1", "a b", "a,b", "ä"):
        assert remove_foreign(f"{hostile}=1", "localhost", "/") == ["=removed; Max-Age=0; Path=/"]
        assert remove_copies(NAME, f"{hostile}.example", f"/{hostile}/x") == [
            "codehub_session=; Max-Age=0; Path=/x",
            "=removed; Max-Age=0; Path=/",
            "=removed; Max-Age=0; Path=/x",
        ]
