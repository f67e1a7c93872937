"""Requests of a workspace's page to the API of the main origin."""

from tests.attacks.attempts.attempt import Attempt, Control, Goal

READ, CHANGE = Goal.READ_ACCOUNT, Goal.CHANGE

REQUESTS = [
    Attempt("fetch", READ, "return account()"),
    Attempt("fetch with the referrer /", READ, "return account({referrer: '/'})"),
    Attempt("fetch that sends the origin only", READ, "return account({referrerPolicy: 'origin'})"),
    Attempt(
        "fetch without a referrer",
        READ,
        "return account({referrerPolicy: 'no-referrer'})",
        Control.NAIVE,
    ),
    Attempt("fetch in mode same-origin", READ, "return account({mode: 'same-origin', referrer: '/'})"),
    Attempt("fetch from the cache", READ, "return account({cache: 'force-cache', referrer: '/'})"),
    Attempt("change with the referrer /", CHANGE, "return change({referrer: '/'})"),
    Attempt("change that sends the origin only", CHANGE, "return change({referrerPolicy: 'origin'})"),
    Attempt(
        "change without a referrer",
        CHANGE,
        "return change({referrerPolicy: 'no-referrer'})",
        Control.NAIVE,
    ),
    Attempt("change with keepalive", CHANGE, "return change({keepalive: true, referrer: '/'})"),
    Attempt(
        "XMLHttpRequest",
        READ,
        """
        history.replaceState(null, '', '?');
        const request = new XMLHttpRequest();
        request.open('GET', t.session);
        request.withCredentials = true;
        request.send();
        await happens(request, 'loadend');
        return request.responseText;
        """,
    ),
    Attempt(
        "address changed with pushState",
        CHANGE,
        "history.pushState(null, '', '/'); return change();",
    ),
    Attempt(
        "90-day token, as a notebook cell made one",
        CHANGE,
        """
        const session = JSON.parse(await account({referrer: '/'}));
        const headers = {'Content-Type': 'application/json', 'X-CSRF-Token': session.csrf_token};
        const body = JSON.stringify({name: t.marker, expires_in_days: 90});
        const options = {method: 'POST', credentials: 'include', headers, body, referrer: '/'};
        return (await fetch(t.main + '/api/v1/tokens', options)).text();
        """,
    ),
    Attempt(
        "EventSource",
        READ,
        """
        history.replaceState(null, '', '/');
        const events = new EventSource(t.main + '/api/v1/events', {withCredentials: true});
        const names = ['workspaces', 'snapshot', 'workspace', 'message', 'ready'];
        const {type, data} = await happens(events, 'error', ...names);
        events.close();
        return type === 'error' ? type : t.account + data;
        """,
    ),
    Attempt(
        "own port of the API",
        READ,
        "return (await fetch(t.api + '/api/v1/session', {credentials: 'include', referrer: '/'})).text()",
        Control.NAIVE,
    ),
    Attempt(
        "sendBeacon with JSON",
        CHANGE,
        """
        const body = new Blob([JSON.stringify({name: t.marker})], {type: 'application/json'});
        return navigator.sendBeacon(t.main + '/api/v1/tokens', body);
        """,
        Control.NAIVE,
    ),
    Attempt(
        "fetch in mode no-cors with JSON as text",
        CHANGE,
        """
        const body = JSON.stringify({name: t.marker});
        const options = {method: 'POST', mode: 'no-cors', credentials: 'include', body, referrer: ''};
        return (await fetch(t.main + '/api/v1/tokens', options)).type;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "form with JSON as text",
        CHANGE,
        "await submitJson(t.main + '/api/v1/tokens', {name: t.marker})",
        Control.NAIVE,
    ),
    Attempt(
        "multipart form",
        CHANGE,
        """
        const body = new FormData();
        body.set('name', t.marker);
        const options = {method: 'POST', mode: 'no-cors', credentials: 'include', body, referrer: '/'};
        return (await fetch(t.main + '/api/v1/tokens', options)).type;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "form of a page of the proxy",
        CHANGE,
        """
        const body = new URLSearchParams({token: t.marker, next: t.marker});
        const options = {method: 'POST', mode: 'no-cors', credentials: 'include', body, referrer: '/'};
        return (await fetch(t.main + '/w/' + t.neighborId + '/.codehub/stop', options)).type;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "WebSocket to the API",
        READ,
        "return await socket(t.main + '/api/v1/events') === 'open' ? t.account : ''",
        Control.NAIVE,
    ),
    Attempt(
        "sign-out by a form",
        Goal.SIGN_OUT,
        "await submitJson(t.main + '/api/v1/logout', {})",
        Control.NAIVE,
    ),
    Attempt(
        "sign-in as Mallory by fetch",
        Goal.SIGN_IN_MALLORY,
        """
        const headers = {'Content-Type': 'application/json'};
        const body = JSON.stringify(t.mallory);
        const options = {method: 'POST', credentials: 'include', headers, body, referrer: '/'};
        return (await fetch(t.main + '/api/v1/login', options)).status;
        """,
    ),
    Attempt(
        "sign-in as Mallory by a form",
        Goal.SIGN_IN_MALLORY,
        "await submitJson(t.main + '/api/v1/login', t.mallory)",
        Control.NAIVE,
    ),
]
