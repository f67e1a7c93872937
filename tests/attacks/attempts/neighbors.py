"""Attempts of a workspace's page against another workspace of the same user."""

from tests.attacks.attempts.attempt import Attempt, Control, Goal

READ, ENTER = Goal.READ_NEIGHBOR, Goal.ENTER_NEIGHBOR

NEIGHBORS = [
    Attempt(
        "fetch from a neighbor",
        READ,
        "return (await fetch(t.neighbor + 'secret', {credentials: 'include'})).text()",
        Control.NEIGHBOR,
    ),
    Attempt(
        "fetch from a neighbor without a referrer",
        READ,
        """
        const options = {credentials: 'include', referrerPolicy: 'no-referrer'};
        return (await fetch(t.neighbor + 'secret', options)).text();
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "framed neighbor",
        READ,
        "return (await framed(t.neighbor + 'secret')).document.body.textContent",
        Control.NEIGHBOR,
    ),
    Attempt(
        "opened neighbor",
        READ,
        "return (await opened(t.neighbor + 'secret')).document.body.textContent",
        Control.NEIGHBOR,
    ),
    Attempt(
        "script in a neighbor's window",
        ENTER,
        """
        const other = await opened(t.neighbor);
        return (await other.fetch(t.neighbor + t.marker)).status;
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "script of a neighbor",
        READ,
        """
        const script = Object.assign(document.createElement('script'), {src: t.neighbor + 'secret.js'});
        document.body.append(script);
        await happens(script, 'load', 'error');
        return window.secret;
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "style sheet of a neighbor",
        READ,
        """
        const rel = 'stylesheet';
        const link = Object.assign(document.createElement('link'), {rel, href: t.neighbor + 'secret.css'});
        document.body.append(link);
        await happens(link, 'load', 'error');
        return getComputedStyle(document.body).getPropertyValue('--secret');
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "image of a neighbor",
        ENTER,
        """
        const image = new Image();
        image.src = t.neighbor + t.marker;
        await happens(image, 'load', 'error');
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "preloaded page of a neighbor",
        ENTER,
        """
        const [rel, href] = ['preload', t.neighbor + t.marker];
        const link = Object.assign(document.createElement('link'), {rel, href, as: 'fetch'});
        link.crossOrigin = 'use-credentials';
        document.body.append(link);
        await happens(link, 'load', 'error');
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "request to a neighbor in mode no-cors",
        ENTER,
        """
        const options = {method: 'POST', mode: 'no-cors', credentials: 'include', body: t.marker};
        return (await fetch(t.neighbor + t.marker, options)).type;
        """,
        Control.NEIGHBOR,
    ),
    Attempt(
        "form to a neighbor",
        ENTER,
        "await submitJson(t.neighbor + t.marker, {})",
        Control.NEIGHBOR,
    ),
    Attempt(
        "WebSocket to a neighbor",
        ENTER,
        "return socket(t.neighbor + t.marker)",
        Control.NEIGHBOR,
    ),
    Attempt(
        "EventSource of a neighbor",
        READ,
        """
        const events = new EventSource(t.neighbor + 'secret.events', {withCredentials: true});
        const {data} = await happens(events, 'message', 'error');
        events.close();
        return data;
        """,
        Control.NEIGHBOR,
    ),
]
