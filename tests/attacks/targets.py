"""What a script attacks: CodeHub from a workspace's page, or the positive control."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from codehub.origins import PLAIN_COOKIE
from tests.attacks.attempts import Control
from tests.attacks.harness import ALICE, MALLORY, PASSWORD, PORT, Harness
from tests.attacks.naive_hub import SECRET, USERS, NaiveHub


class AttackTarget(Protocol):
    """A hub, the page that a script runs on, and what the hub's servers have received."""

    main: str
    page: str
    account: str
    mallory: str
    secret: str
    credentials: dict[str, str]

    def script_arguments(self, marker: str) -> dict[str, Any]:
        """Return the script's parameter `t`."""

    async def was_changed(self, marker: str) -> bool: ...

    def was_entered(self, marker: str) -> bool: ...

    def has_leaked(self, marker: str, session: str) -> bool: ...


class CodeHubTarget:
    """A real CodeHub; with a control, the script runs on another page."""

    def __init__(self, harness: Harness, control: Control | None = None) -> None:
        self.harness = harness
        self.main = harness.main
        places = {
            None: harness.own,
            Control.MAIN: f"{harness.main}/healthz",
            Control.NEIGHBOR: harness.neighbor,
        }
        self.page = places[control]
        self.account, self.mallory, self.secret = ALICE, MALLORY, harness.workspaces.secret
        self.credentials = {"username": ALICE, "password": PASSWORD}

    def script_arguments(self, marker: str) -> dict[str, Any]:
        harness, workspaces = self.harness, self.harness.workspaces
        return {
            "main": harness.main,
            "session": f"{harness.main}/api/v1/session",
            "victim": f"{harness.main}/api/v1/workspaces/{workspaces.neighbor}",
            "api": harness.api,
            "own": self.page if self.page == harness.own else f"{harness.main}/",
            "neighbor": harness.neighbor,
            "neighborId": workspaces.neighbor,
            "cookie": PLAIN_COOKIE,
            "mallory": {"username": MALLORY, "password": PASSWORD},
            "mallorySession": harness.mallory_session,
            "account": self.account,
            "secret": self.secret,
            "marker": marker,
        }

    async def was_changed(self, marker: str) -> bool:
        return await self.harness.workspaces.count_changes(marker) > 0

    def was_entered(self, marker: str) -> bool:
        return marker in self.harness.workspaces.requests_of(self.harness.workspaces.neighbor)

    def has_leaked(self, marker: str, session: str) -> bool:
        received = self.harness.workspaces.requests_of(self.harness.workspaces.hostile)
        assert marker in received
        return session in received


class PortTarget(CodeHubTarget):
    """The page is at a port of the hostile workspace; its neighbor is another port, or the IDE (None)."""

    def __init__(self, harness: Harness, neighbor: int | None) -> None:
        self._neighbor = neighbor
        url = harness.own if neighbor is None else harness.port_url(neighbor)
        super().__init__(replace(harness, own=harness.port_url(PORT), neighbor=url))

    def was_entered(self, marker: str) -> bool:
        workspaces = self.harness.workspaces
        return marker in workspaces.requests_of(workspaces.hostile, self._neighbor)

    def has_leaked(self, marker: str, session: str) -> bool:
        received = self.harness.workspaces.requests_of(self.harness.workspaces.hostile, PORT)
        assert marker in received
        return session in received


@dataclass
class NaiveTarget:
    """The unprotected hub."""

    hub: NaiveHub

    def __post_init__(self) -> None:
        self.main = self.hub.url
        self.page = f"{self.hub.url}/w/hostile/"
        self.account, self.mallory, self.secret = USERS["alice"], USERS["mallory"], SECRET
        self.credentials = {"username": "alice"}

    def script_arguments(self, marker: str) -> dict[str, Any]:
        return {
            "main": self.main,
            "session": f"{self.main}/api/v1/session",
            "victim": f"{self.main}/api/v1/workspaces/neighbor",
            "api": self.main,
            "own": self.page,
            "neighbor": f"{self.main}/w/neighbor/",
            "neighborId": "neighbor",
            "cookie": PLAIN_COOKIE,
            "mallory": {"username": "mallory"},
            "mallorySession": "mallory",
            "account": self.account,
            "secret": self.secret,
            "marker": marker,
        }

    async def was_changed(self, marker: str) -> bool:
        return marker in self.hub.changes

    def was_entered(self, marker: str) -> bool:
        return marker in self.hub.entered

    def has_leaked(self, marker: str, session: str) -> bool:
        del marker
        return session in self.hub.leaked
