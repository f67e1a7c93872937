"""The application: routes, the guard in front of them, error handlers."""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI, Response
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from api.context import Context
from api.errors import install_error_handlers
from api.middleware import RequestMiddleware
from api.openapi import build_openapi
from api.routers import (
    admin,
    audit,
    editors,
    events,
    health,
    history,
    identity,
    network,
    oidc,
    pages,
    ports,
    tokens,
    totp,
    users,
    workspaces,
)
from api.security.access import ACCESS, API
from api.security.guard import GuardedRoute

ROUTERS = (
    health.router,
    identity.router,
    oidc.router,
    totp.router,
    tokens.router,
    editors.router,
    workspaces.router,
    history.router,
    network.router,
    ports.router,
    events.router,
    users.router,
    admin.router,
    audit.router,
    pages.router,
)


def create_app(context: Context) -> ASGIApp:
    """Create the application; the context must outlive it."""
    return RequestMiddleware(create_routes(context), context.metrics, https=context.options.is_https)


def create_routes(context: Context) -> FastAPI:
    # FastAPI's own documentation routes would bypass the guard.
    app = FastAPI(title="CodeHub", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.context = context
    install_error_handlers(app)
    pages.install_not_found_page(app)
    routers = (*ROUTERS, _documents(app, context))
    for router in routers:
        app.include_router(router)
    check_access_table([route for router in routers for route in router.routes])
    return app


def check_access_table(routes: Sequence[BaseRoute]) -> None:
    """Check that every route is guarded, and that the access table lists exactly these routes."""
    guarded = [route for route in routes if isinstance(route, GuardedRoute)]
    known = {(method, route.path_format) for route in guarded for method in route.methods or ()}
    if len(guarded) != len(routes) or known != set(ACCESS):
        raise RuntimeError(f"routes and access table differ: {known ^ set(ACCESS)}")


def _documents(app: FastAPI, context: Context) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GuardedRoute, include_in_schema=False)

    @router.get("/openapi.json")
    async def read_openapi() -> Response:
        routes = [route for router in ROUTERS for route in router.routes]
        return JSONResponse(build_openapi(app, routes, context))

    return router
