"""Reads CodeHub's cookies, identically in the API and the proxy, and removes duplicate and foreign ones."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, product

from codehub.origins import RESERVED_COOKIES

DUPLICATE = (
    "The browser sent CodeHub's cookie twice, so one of them is not ours. The other copies were removed: "
    "try again, or delete the cookies of this site and sign in again."
)
TOO_LARGE = (
    "The browser sent too many cookies. CodeHub has removed some that are not its own: try again until "
    "it works, or delete the cookies of this site."
)
# More than this could make the response itself too large.
MAX_REMOVALS = 100
# How deep to look for the paths of cookies.
MAX_PATHS = 4
# Scripts can set a cookie without a name.
NAMELESS = ""
NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
HOST = re.compile(r"([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)(?::[0-9]+)?")
ADDRESS = re.compile(r"[0-9.]+")


class DuplicateCookie(ValueError):
    """A request has several cookies of this name, and the real one cannot be told apart."""


def find_cookie(header: str, name: str) -> str | None:
    """Return the only cookie of this name. Raise DuplicateCookie."""
    found = [value for each, value in _pairs(header) if each == name]
    if len(found) > 1:
        raise DuplicateCookie(name)
    return found[0] if found and found[0] else None


def remove_copies(name: str, host: str, path: str) -> list[str]:
    """Return `Set-Cookie` values that remove all cookies of this name but ours, at this host's root."""
    ours, places = (None, "/"), list(_places(host, path))
    copies = [(name, place) for place in places if place != ours]
    # A cookie without a name is sent as its value, which can look like ours: `name=value`.
    copies += [(NAMELESS, place) for place in places]
    return [_removal(each, *place) for each, place in copies[:MAX_REMOVALS]]


def remove_foreign(header: str, host: str, path: str) -> list[str]:
    """Return `Set-Cookie` values that remove cookies of this header that are not ours."""
    names = dict.fromkeys(name for name, _ in _pairs(header) if NAME.fullmatch(name))
    foreign = [NAMELESS, *(name for name in names if not name.startswith(RESERVED_COOKIES))]
    found = ((name, place) for place in _places(host, path) for name in foreign)
    return [_removal(name, *place) for name, place in islice(found, MAX_REMOVALS)]


def _pairs(header: str) -> Iterator[tuple[str, str]]:
    for pair in header.split(";"):
        name, mark, value = pair.partition("=")
        # Without the mark, it is the value of a cookie without a name.
        yield (name.strip(" \t"), value.strip(" \t")) if mark else (NAMELESS, name.strip(" \t"))


def _places(host: str, path: str) -> Iterable[tuple[str | None, str]]:
    """Return where a cookie may be set: for this host or a parent domain, at this path or above."""
    parts = [part for part in path.split("/") if part and NAME.fullmatch(part)][: MAX_PATHS - 1]
    paths = ["/" + "/".join(parts[:end]) for end in range(len(parts) + 1)]
    return product((None, *_domains(host)), paths)


def _domains(host: str) -> list[str]:
    found = HOST.fullmatch(host)
    if found is None or ADDRESS.fullmatch(found[1]):
        return []
    labels = found[1].split(".")
    return [".".join(labels[start:]) for start in range(len(labels) - 1)]


def _removal(name: str, domain: str | None, path: str) -> str:
    # Only with Secure do browsers accept these two prefixes and overwrite secure cookies.
    secure = "; Secure" if name.startswith("__") else ""
    # Browsers ignore a cookie that has neither a name nor a value.
    value = "" if name else "removed"
    return f"{name}={value}; Max-Age=0; Path={path}{f'; Domain={domain}' if domain else ''}{secure}"
