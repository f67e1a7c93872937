"""Attacks from inside a workspace. Each succeeded on an earlier release.

By a script in a workspace's page, in every origin mode (`test_browser.py`; add new attempts to `attempts/`):
- requests with another referrer, a 90-day token from a notebook cell, `pushState`: `attempts/requests.py`
- framed `/metrics`, windows, workers: `attempts/frames.py`
- a plain-http host name, where browsers send no Sec-Fetch fields: a mode in `harness.py`
- other workspaces of the same user: `attempts/neighbors.py`
- evicting or shadowing the session, cookies that are too large: `attempts/cookies.py`

Without a browser (`test_hosts.py`): credentials and tickets at the wrong host, two session cookies, and
hosts that only look right.

Elsewhere:
- no sandbox, root inside it, the port race, other homes: `tests/integration/test_local_sandbox.py`
- our own servers from a terminal: `tests/integration`, `tests/docker/test_isolation.py`
- connections per address, slow bodies, `/%6detrics`, headers of refusals: `tests/front_door`, `tests/proxy`
- disabled users, images, locking others out, tokens after a reset: `tests/integration`, `tests/api`
- control characters in `ws logs`: `tests/cli`; docker-gate: `tests/deploy/test_docker_gate.py`
"""
