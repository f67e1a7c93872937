"""Refuses requests with duplicate or oversized cookies, and removes them from the browser."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codehub.cookies import DUPLICATE, TOO_LARGE, DuplicateCookie, find_cookie, remove_copies, remove_foreign
from proxy.pages import Pages
from proxy.request_kind import RequestKind, request_kind_of
from proxy.responses import error_response
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response

TARGET = re.compile(rb"[A-Z]+ (/[^ ?]*)")
HOST = re.compile(rb"\r\nhost:[ \t]*([^\s]+)", re.IGNORECASE)
COOKIE = re.compile(rb"\r\ncookie:[ \t]*([^\r\n]+)", re.IGNORECASE)
OPENS_PAGE = re.compile(rb"\r\nsec-fetch-mode:[ \t]*navigate\b|\r\naccept:[ \t]*text/html", re.IGNORECASE)
# With fewer bytes of cookies, something else makes the head too large.
LARGE_BYTES = 8 * 1024


@dataclass(frozen=True)
class CookieRefusals:
    """Knows the names of our own cookies."""

    pages: Pages
    names: Sequence[bytes]

    def check(self, head: RequestHead) -> Response | None:
        """Return a refusal if one of our cookies was sent twice: API and proxy could read different ones."""
        cookies = head.block.known.get(b"cookie")
        if cookies is None:
            return None
        for name in self._names_at(head):
            # Counting is quick; the name may also be a part of another cookie.
            if cookies.count(name) > 1 and _is_duplicate(cookies, name):
                return self._refuse_duplicate(head, name.decode())
        return None

    def _names_at(self, head: RequestHead) -> Sequence[bytes]:
        del head
        return self.names

    def explain_too_large(self, start: bytes) -> Response | None:
        """Return a response if cookies make the head too large; `start` is its beginning."""
        cookies, target, host = COOKIE.search(start), TARGET.match(start), HOST.search(start)
        if cookies is None or target is None or host is None or len(cookies[1]) < LARGE_BYTES:
            return None
        header, path = cookies[1].decode("latin-1"), target[1].decode("latin-1")
        removals = remove_foreign(header, host[1].decode("latin-1"), path)
        is_page = OPENS_PAGE.search(start) is not None
        return self._respond(431, TOO_LARGE, removals, is_page=is_page)

    def _refuse_duplicate(self, head: RequestHead, name: str) -> Response:
        path = head.target.partition(b"?")[0].decode("latin-1")
        removals = remove_copies(name, (head.host or b"").decode("latin-1"), path)
        is_page = request_kind_of(head) is RequestKind.NAVIGATION
        return self._respond(400, DUPLICATE, removals, is_page=is_page)

    def _respond(self, status: int, message: str, removals: Sequence[str], *, is_page: bool) -> Response:
        if is_page:
            response = self.pages.cookies(status, message)
        else:
            response = error_response(status, "INVALID_REQUEST", message)
        return Response(
            status, (*response.headers, *(("Set-Cookie", each) for each in removals)), response.body
        )


@dataclass(frozen=True)
class PortCookieRefusals(CookieRefusals):
    """For port mode, where the name of a workspace's cookie ends with its port."""

    workspace_cookie: bytes

    def _names_at(self, head: RequestHead) -> Sequence[bytes]:
        port = (head.host or b"").rpartition(b":")[2]
        return (*self.names, b"%b_%b" % (self.workspace_cookie, port))


def _is_duplicate(cookies: bytes, name: bytes) -> bool:
    try:
        find_cookie(cookies.decode("latin-1"), name.decode())
    except DuplicateCookie:
        return True
    return False
