"""The dashboard: pages without any data in them, which anybody may load, and the files that they need."""

from collections.abc import Awaitable, Callable
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Header, Request, Response
from starlette.exceptions import HTTPException

from api.context import Context, Provided, context_of
from api.dashboard.bundle import (
    ASSETS,
    DIGEST,
    FILES,
    Shell,
    digest_of,
    render_not_found,
    render_shell,
)
from api.security.access import API
from api.security.guard import GuardedRoute

Handler = Callable[[Request, Exception], Awaitable[Response]]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

HTML = "text/html; charset=utf-8"
# Nothing from elsewhere, nothing inline, and no text ever becomes markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# Asked for each time, and not sent again unless it has changed.
CHECKED = "no-cache"
KEPT = "public, max-age=31536000, immutable"
NOT_FOUND = 404

# Not the id's own pattern: who mistypes it is told so by the page, which asks the API.
SHELLS = {
    "/": Shell("Workspaces", "list/page.js"),
    "/login": Shell("Sign in", "login/page.js"),
    "/workspaces/{workspace_id}": Shell("Workspace", "workspace/page.js"),
    "/account": Shell("Account", "account/page.js"),
    "/admin": Shell("Administration", "admin/page.js"),
}


def _show(shell: Shell) -> Callable[..., Awaitable[Response]]:
    async def show(context: Provided, if_none_match: IfNoneMatch = None) -> Response:
        return _answer_shell(shell, context, if_none_match)

    return show


for path, shell in SHELLS.items():
    router.add_api_route(path, _show(shell))


@router.get(f"{ASSETS}/{{digest}}/{{name:path}}")
async def read_asset(digest: str, name: str) -> Response:
    """A page of another version of CodeHub, from before a restart, gets what there is, but not to keep."""
    asset = FILES.get(name)
    if asset is None:
        raise HTTPException(NOT_FOUND)
    caching = KEPT if digest == DIGEST else "no-store"
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": caching})


def install_not_found_page(app: FastAPI) -> None:
    """For people who follow a wrong link; programs get the one shape of all errors."""
    otherwise = cast("Handler", app.exception_handlers[HTTPException])

    async def answer_not_found(request: Request, error: Exception) -> Response:
        if not _opens_page(request):
            return await otherwise(request, error)
        content = render_not_found(_base_path(context_of(request)))
        return Response(content, NOT_FOUND, _headers("no-store"), HTML)

    app.add_exception_handler(NOT_FOUND, answer_not_found)


def _opens_page(request: Request) -> bool:
    is_page = request.method == "GET" and not request.url.path.startswith((f"{API}/", f"{ASSETS}/"))
    return is_page and "text/html" in request.headers.get("accept", "")


def _answer_shell(shell: Shell, context: Context, if_none_match: str | None) -> Response:
    content = render_shell(shell, _base_path(context))
    etag = f'"{digest_of(content)}"'
    headers = {**_headers(CHECKED), "ETag": etag}
    # It may be weak by now, or one of several.
    if etag in (if_none_match or ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=HTML)


def _headers(caching: str) -> dict[str, str]:
    return {"Content-Security-Policy": POLICY, "Cache-Control": caching}


def _base_path(context: Context) -> str:
    return urlsplit(context.options.public_base_url).path.rstrip("/")
