"""Signing in with a password, looking who one is, and signing out again."""

from contextlib import suppress
from http.cookies import SimpleCookie

from gameday.people.requests import API, NoAnswer, Reply, Requests
from gameday.people.tally import Tally
from gameday.stage.users import User


async def visit(requests: Requests, user: User, tally: Tally) -> None:
    """An outage ends the visit, and the session is left behind."""
    with suppress(NoAnswer):
        form = {"username": user.name, "password": user.password}
        reply = await requests.ask("POST", f"{API}/login", form=form, as_token=False)
        if not reply.is_good:
            return
        tally.add("sessions: signed in")
        cookie = {"Cookie": _cookies_of(reply)}
        await requests.ask("GET", f"{API}/session", headers=cookie, as_token=False)
        proof = {**cookie, "X-CSRF-Token": str(reply.document["csrf_token"])}
        ended = await requests.ask("POST", f"{API}/logout", headers=proof, as_token=False)
        if ended.is_good:
            tally.add("sessions: signed out")


def _cookies_of(reply: Reply) -> str:
    cookies = SimpleCookie(reply.headers.get("Set-Cookie", ""))
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in cookies.values())
