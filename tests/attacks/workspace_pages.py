"""The pages of the two workspaces: Mallory's page and scripts, and the other one's secret."""

from pathlib import Path

from codehub.origins import HOST_COOKIE, PLAIN_COOKIE

SERVICE_WORKER = """
addEventListener('install', () => skipWaiting());
addEventListener('message', async ({data, source}) => {
  const options = {credentials: 'include', referrer: new URL('/', location)};
  source.postMessage(await fetch(data, options).then((response) => response.text(), String));
});
"""


def pages(secret: str, mallory_session: str) -> dict[str, str]:
    """Return the files by name: header lines, an empty line and the body."""
    stolen = [f"Set-Cookie: {name}={mallory_session}; Path=/" for name in (PLAIN_COOKIE, HOST_COOKIE)]
    return {
        "index.html": "Content-Type: text/html\n\n<!doctype html><title>Workspace</title><body>Hello",
        "service-worker.js": f"Content-Type: text/javascript\nService-Worker-Allowed: /\n\n{SERVICE_WORKER}",
        "secret": f"Content-Type: text/html\nAccess-Control-Allow-Origin: *\n\n{secret}",
        "secret.js": f"Content-Type: text/javascript\n\nwindow.secret = '{secret}'",
        "secret.css": f"Content-Type: text/css\n\nbody {{ --secret: {secret} }}",
        "secret.events": f"Content-Type: text/event-stream\n\ndata: {secret}\n\n",
        "set-cookie": "\n".join([*stolen, "", "ok"]),
        "clear-site-data": 'Clear-Site-Data: "cookies", "storage"\n\nok',
    }


def publish(home: Path, files: dict[str, str]) -> None:
    """Write the files to the home of a workspace; the test IDE serves them."""
    site = home / "site"
    site.mkdir(exist_ok=True)
    for name, content in files.items():
        (site / name).write_text(content)
