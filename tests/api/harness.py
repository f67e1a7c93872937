"""An API on real servers, called in this process by users with cookies and tokens."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp

from api.app import create_routes
from api.context import Context
from api.middleware import RequestMiddleware
from api.security.csrf import CSRF_HEADER
from api.wiring import open_context
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.bootstrap import connect_temporal, open_ports
from codehub.policy import policy_of
from codehub.services.passwords import Passwords
from codehub.services.users import add_user
from codehub.settings import Settings, load_settings
from testkit.fake_world import FakeWorld
from testkit.fakes import FakeArchives, FakeInstances, FakeStorageJobs, FakeVolumes
from testkit.redis_server import RedisServer
from testkit.rows import BY
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.buckets import NAME as BUCKET
from tests.identities import CHEAP
from worker.workers import create_workers

PASSWORD = "correct horse battery"  # noqa: S105 (of test users)
ORIGIN = "http://localhost:8080"


def environment_of(
    data_dir: Path, database_url: str, redis: RedisServer, temporal: TemporalServer, s3: S3Server
) -> dict[str, str]:
    """Return the settings of an API or worker on these servers."""
    return {
        "CODEHUB_DATA_DIR": str(data_dir),
        "CODEHUB_DATABASE_URL": database_url,
        "CODEHUB_REDIS_URL": redis.url,
        "CODEHUB_TEMPORAL_ADDRESS": temporal.address,
        # No worker polls it unless a test runs one.
        "CODEHUB_TEMPORAL_TASK_QUEUE": f"api-{uuid4()}",
        "CODEHUB_S3_ENDPOINT_URL": s3.endpoint_url,
        "CODEHUB_S3_ACCESS_KEY": s3.access_key,
        "CODEHUB_S3_SECRET_KEY": s3.secret_key,
        "CODEHUB_S3_BUCKET": BUCKET,
        "CODEHUB_API_REQUESTS_PER_SECOND": "100000",
        "CODEHUB_API_SIGN_INS_PER_MINUTE": "100000",
        # A slow machine must not need the password again.
        "CODEHUB_API_CONFIRM_SECONDS": "3600",
        # Fake providers have any image; tests/api/test_workspace_rules.py has a list.
        "CODEHUB_WORKSPACES_ALLOWED_IMAGES": "*",
    }


@dataclass
class Person:
    """A user with a client that is signed in."""

    user_id: UUID
    username: str
    client: httpx.AsyncClient
    is_admin: bool = False

    @property
    def workspaces(self) -> str:
        return "/api/v1/workspaces"

    async def create(self, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        """Create a workspace, in STANDBY by default, which takes no running slot."""
        form = {"name": "home", "desired_state": "STANDBY", **fields}
        response = await self.client.post(self.workspaces, json=form)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created


@dataclass
class ApiHarness:
    """An API with its context and settings."""

    context: Context
    settings: Settings
    environment: Mapping[str, str]
    clients: list[httpx.AsyncClient] = field(default_factory=list)
    routes: FastAPI = field(init=False)
    app: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        self.routes = create_routes(self.context)
        https = self.context.options.is_https
        self.app = RequestMiddleware(self.routes, self.context.metrics, https=https)

    def with_cheap_passwords(self) -> "ApiHarness":
        """Return the same API with password hashes that cost next to nothing."""
        return replace(self, context=replace(self.context, passwords=Passwords(CHEAP)))

    def with_fake_instances(self, world: FakeWorld) -> "ApiHarness":
        """Return the same API on instances whose logs a test can write."""
        return replace(self, context=replace(self.context, instances=FakeInstances(world)))

    def stranger(self, **headers: str) -> httpx.AsyncClient:
        """Return a client without credentials."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers)
        self.clients.append(client)
        return client

    async def person(self, username: str | None = None, *, admin: bool = False) -> Person:
        """Create a user who is signed in with a cookie and sends the CSRF token."""
        username = username or f"user-{uuid4().hex[:12]}"
        user = await add_user(
            self.context.database,
            self.context.passwords,
            username,
            PASSWORD,
            role="admin" if admin else "user",
            by=BY,
            now=self.context.now(),
        )
        client = self.stranger()
        await self.sign_in(client, username)
        return Person(user.id, username, client, admin)

    async def sign_in(self, client: httpx.AsyncClient, username: str) -> None:
        response = await client.post("/api/v1/login", json={"username": username, "password": PASSWORD})
        assert response.status_code == 200, response.text
        client.headers[CSRF_HEADER] = response.json()["csrf_token"]

    async def token_client(self, person: Person, **form: Any) -> tuple[httpx.AsyncClient, str]:  # noqa: ANN401
        """Create a token for all that the person may do; return a client that uses it, and its id."""
        scopes = ["workspaces", *(["admin"] if person.is_admin else [])]
        named = {"name": "program", "scopes": scopes, **form}
        response = await person.client.post("/api/v1/tokens", json=named)
        assert response.status_code == 201, response.text
        created = response.json()
        return self.stranger(authorization=f"Bearer {created['token']}"), created["id"]


@asynccontextmanager
async def open_harness(environment: Mapping[str, str]) -> AsyncIterator[ApiHarness]:
    settings = load_settings(environment)
    async with open_context(settings) as context:
        harness = ApiHarness(context, settings, environment)
        try:
            yield harness
        finally:
            for client in harness.clients:
                await client.aclose()


@asynccontextmanager
async def running_worker(harness: ApiHarness) -> AsyncIterator[FakeWorld]:
    """Run a worker that carries out what the API requests, on fake providers."""
    world = FakeWorld()
    world.images.add(harness.context.options.default_image_ref)
    client = await connect_temporal(harness.settings)
    task_queue = harness.settings.temporal.task_queue
    async with open_ports(harness.settings, client) as real:
        ports = replace(
            real,
            instances=FakeInstances(world),
            volumes=FakeVolumes(world),
            jobs=FakeStorageJobs(world),
            archives=FakeArchives(world),
            convergence=TemporalConvergence(client, task_queue),
        )
        async with create_workers(client, task_queue, ports, policy_of(harness.settings)):
            yield world
