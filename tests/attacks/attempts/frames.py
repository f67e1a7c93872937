"""Frames, windows and workers, which make a request look like another page's."""

from tests.attacks.attempts.attempt import Attempt, Control, Goal

READ, CHANGE = Goal.READ_ACCOUNT, Goal.CHANGE


def _framed(what: str, path: str) -> Attempt:
    script = f"const frame = await framed(t.main + '{path}'); return change({{}}, frame)"
    return Attempt(f"framed {what}", CHANGE, script, Control.NAIVE)


def _opened(what: str, path: str) -> Attempt:
    script = f"const other = await opened(t.main + '{path}'); return change({{}}, other)"
    return Attempt(f"opened {what}", CHANGE, script)


FRAMES = [
    _framed("/metrics", "/metrics"),
    _framed("/metrics behind an escape", "/%6detrics"),
    _framed("dashboard", "/"),
    _framed("health check", "/healthz"),
    _framed("page that does not exist", "/nothing"),
    _framed("malformed path", "/%00"),
    _framed("address of a workspace that does not exist", "/w/00000000-0000-4000-8000-000000000000/"),
    _framed("address that is too long", "/?" + "x" * 70_000),
    _opened("dashboard", "/"),
    _opened("health check", "/healthz"),
    Attempt(
        "frame without an address",
        CHANGE,
        "return change({}, await framed(''))",
        Control.NAIVE,
    ),
    Attempt(
        "frame with a document of its own",
        READ,
        """
        const words = `fetch('${t.session}', {credentials: 'include', referrer: '/'})
          .then((answer) => answer.text(), String).then((text) => parent.postMessage(text, '*'))`;
        const text = answer();
        await framed('', {srcdoc: '<scr' + 'ipt>' + words + '</scr' + 'ipt>'});
        return text;
        """,
    ),
    Attempt(
        "sandboxed frame, whose origin is null",
        CHANGE,
        """
        const form = `<form method=post enctype=text/plain target=_top action="${t.main}/api/v1/tokens">
          <input name='{"name": "${t.marker}", "ignored": "' value='"}'></form>
          <scr` + `ipt>document.forms[0].submit()</scr` + `ipt>`;
        await framed('', {sandbox: 'allow-scripts allow-forms allow-top-navigation', srcdoc: form});
        return answer();
        """,
        Control.NAIVE,
    ),
    Attempt(
        "window of its own at the dashboard's address",
        CHANGE,
        """
        const other = await opened(t.own);
        other.history.replaceState(null, '', t.main + '/');
        return change({}, other);
        """,
    ),
    Attempt(
        "document.domain",
        READ,
        """
        document.domain = new URL(t.main).hostname;
        const frame = await framed(t.main + '/healthz');
        return account({}, frame);
        """,
        Control.NAIVE,
    ),
]

WORKERS = [
    Attempt(
        "worker",
        READ,
        """
        const words = `fetch('${t.session}', {credentials: 'include', referrer: '${t.main}/'})
          .then((answer) => answer.text(), String).then(postMessage)`;
        const worker = new Worker(URL.createObjectURL(new Blob([words])));
        return (await happens(worker, 'message', 'error')).data;
        """,
    ),
    Attempt(
        "shared worker",
        READ,
        """
        const words = `onconnect = ({ports: [port]}) =>
          fetch('${t.session}', {credentials: 'include', referrerPolicy: 'origin'})
            .then((answer) => answer.text(), String).then((text) => port.postMessage(text))`;
        const worker = new SharedWorker(URL.createObjectURL(new Blob([words])));
        worker.port.start();
        return (await happens(worker.port, 'message')).data;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "request made by a service worker",
        READ,
        """
        const {installing} = await navigator.serviceWorker.register(t.own + 'service-worker.js');
        installing.postMessage(t.session);
        return (await happens(navigator.serviceWorker, 'message')).data;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "service worker for the main origin",
        READ,
        """
        const scope = new URL('/', t.main);
        await navigator.serviceWorker.register(t.own + 'service-worker.js', {scope});
        return t.account;
        """,
        Control.NAIVE,
    ),
    Attempt(
        "service worker for another workspace",
        Goal.READ_NEIGHBOR,
        """
        await navigator.serviceWorker.register(t.own + 'service-worker.js', {scope: t.neighbor});
        return t.secret;
        """,
        Control.NAIVE,
    ),
]
