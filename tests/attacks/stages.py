"""Where a script runs: as the workspace's page against CodeHub, or at the place of its positive control."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from codehub.origins import PLAIN_COOKIE
from tests.attacks.attempts import Control
from tests.attacks.naive_hub import SECRET, USERS, NaiveHub
from tests.attacks.scene import ALICE, MALLORY, PASSWORD, PORT, Scene


class Stage(Protocol):
    """A hub, the page that a script runs on, and what the hub's servers have seen."""

    main: str
    page: str
    account: str
    mallory: str
    secret: str
    credentials: dict[str, str]

    def targets(self, marker: str) -> dict[str, Any]:
        """Return what a script knows as `t`."""

    async def was_changed(self, marker: str) -> bool: ...

    def was_entered(self, marker: str) -> bool: ...

    def has_leaked(self, marker: str, session: str) -> bool: ...


class CodeHubStage:
    """A real CodeHub; the control of an attempt runs on another page of it."""

    def __init__(self, scene: Scene, control: Control | None = None) -> None:
        self.scene = scene
        self.main = scene.main
        places = {None: scene.own, Control.MAIN: f"{scene.main}/healthz", Control.NEIGHBOR: scene.neighbor}
        self.page = places[control]
        self.account, self.mallory, self.secret = ALICE, MALLORY, scene.estate.secret
        self.credentials = {"username": ALICE, "password": PASSWORD}

    def targets(self, marker: str) -> dict[str, Any]:
        scene, estate = self.scene, self.scene.estate
        return {
            "main": scene.main,
            "session": f"{scene.main}/api/v1/session",
            "victim": f"{scene.main}/api/v1/workspaces/{estate.neighbor}",
            "api": scene.api,
            "own": self.page if self.page == scene.own else f"{scene.main}/",
            "neighbor": scene.neighbor,
            "neighborId": estate.neighbor,
            "cookie": PLAIN_COOKIE,
            "mallory": {"username": MALLORY, "password": PASSWORD},
            "mallorySession": scene.mallory_session,
            "account": self.account,
            "secret": self.secret,
            "marker": marker,
        }

    async def was_changed(self, marker: str) -> bool:
        return await self.scene.estate.count_changes(marker) > 0

    def was_entered(self, marker: str) -> bool:
        return marker in self.scene.estate.requests_of(self.scene.estate.neighbor)

    def has_leaked(self, marker: str, session: str) -> bool:
        received = self.scene.estate.requests_of(self.scene.estate.hostile)
        assert marker in received
        return session in received


class PortStage(CodeHubStage):
    """The page is at a port of the hostile workspace; its neighbor is another port, or the IDE (None)."""

    def __init__(self, scene: Scene, neighbor: int | None) -> None:
        self._neighbor = neighbor
        url = scene.own if neighbor is None else scene.port_url(neighbor)
        super().__init__(replace(scene, own=scene.port_url(PORT), neighbor=url))

    def was_entered(self, marker: str) -> bool:
        estate = self.scene.estate
        return marker in estate.requests_of(estate.hostile, self._neighbor)

    def has_leaked(self, marker: str, session: str) -> bool:
        received = self.scene.estate.requests_of(self.scene.estate.hostile, PORT)
        assert marker in received
        return session in received


@dataclass
class NaiveStage:
    """The unprotected hub."""

    hub: NaiveHub

    def __post_init__(self) -> None:
        self.main = self.hub.url
        self.page = f"{self.hub.url}/w/hostile/"
        self.account, self.mallory, self.secret = USERS["alice"], USERS["mallory"], SECRET
        self.credentials = {"username": "alice"}

    def targets(self, marker: str) -> dict[str, Any]:
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
