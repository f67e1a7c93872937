"""Liveness, readiness and metrics, for monitoring."""

import logging

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.health_checks import UNAVAILABLE, check_all
from api.responses import json_response
from api.schemas.system import DependencyHealth, Liveness, Readiness
from api.security.guard import GuardedRoute

log = logging.getLogger(__name__)

router = APIRouter(route_class=GuardedRoute, tags=["operations"])

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
METRICS_EXAMPLE = 'codehub_workspaces{phase="RUNNING"} 1.0\n'


@router.get("/healthz", response_model=Liveness, summary="Check liveness")
async def read_liveness() -> Response:
    """Check only this process: an outage elsewhere is no reason to restart it."""
    return json_response(Liveness())


@router.get(
    "/readyz",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "A required dependency is down."}},
    summary="Check readiness",
)
async def read_readiness(context: ApiContext) -> Response:
    """PostgreSQL must answer. Other dependencies are listed, but requests are served without them."""
    healths = await check_all(context.dependencies)
    ready = all(each.healthy for each in healths if each.required)
    # Versions are for administrators only.
    shown = [
        DependencyHealth.model_validate(each, from_attributes=True).model_copy(update={"version": None})
        for each in healths
    ]
    return json_response(Readiness(ready=ready, dependencies=shown), 200 if ready else 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {PROMETHEUS: {"schema": {"type": "string"}, "example": METRICS_EXAMPLE}}}},
    summary="Read Prometheus metrics",
)
async def read_metrics(context: ApiContext) -> Response:
    """Return metrics; those of this process also while the database is down."""
    try:
        await context.metrics.read(context.database, context.hub, context.now(), context.limits.disk_bytes)
        context.metrics.database_up.set(1)
    except UNAVAILABLE as error:
        log.warning("metrics without the database: %s", error)
        context.metrics.database_up.set(0)
    return Response(context.metrics.render(), media_type=PROMETHEUS)
