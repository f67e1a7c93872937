"""The dashboard: pages without data, which anyone may load, and their assets."""

from collections.abc import Awaitable, Callable
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Header, Request, Response
from starlette.exceptions import HTTPException

from api.context import ApiContext, Context, context_of
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
# Nothing from other origins, nothing inline, and no text that becomes markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# Browsers revalidate pages each time.
REVALIDATED = "no-cache"
IMMUTABLE = "public, max-age=31536000, immutable"
NOT_FOUND = 404

# Any id: the page asks the API, and shows its error if the id is wrong.
SHELLS = {
    "/": Shell("Workspaces", "list/page.js"),
    "/login": Shell("Sign in", "login/page.js"),
    "/workspaces/{workspace_id}": Shell("Workspace", "workspace/page.js"),
    "/account": Shell("Account", "account/page.js"),
    "/admin": Shell("Administration", "admin/page.js"),
    "/admin/audit": Shell("Audit log", "audit/page.js"),
    "/admin/egress": Shell("Connections", "egress/page.js"),
}


def _show(shell: Shell) -> Callable[..., Awaitable[Response]]:
    async def show(context: ApiContext, if_none_match: IfNoneMatch = None) -> Response:
        return _shell_response(shell, context, if_none_match)

    return show


for path, shell in SHELLS.items():
    router.add_api_route(path, _show(shell))


@router.get(f"{ASSETS}/{{digest}}/{{name:path}}")
async def read_asset(digest: str, name: str) -> Response:
    """A page of an earlier version of CodeHub gets the current asset, which it must not cache."""
    asset = FILES.get(name)
    if asset is None:
        raise HTTPException(NOT_FOUND)
    caching = IMMUTABLE if digest == DIGEST else "no-store"
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": caching})


def install_not_found_page(app: FastAPI) -> None:
    """Show a page for unknown paths that a person opens; programs get the usual error."""
    handle_other = cast("Handler", app.exception_handlers[HTTPException])

    async def handle_not_found(request: Request, error: Exception) -> Response:
        if not _opens_page(request):
            return await handle_other(request, error)
        content = render_not_found(_base_path(context_of(request)))
        return Response(content, NOT_FOUND, _headers("no-store"), HTML)

    app.add_exception_handler(NOT_FOUND, handle_not_found)


def _opens_page(request: Request) -> bool:
    is_page = request.method == "GET" and not request.url.path.startswith((f"{API}/", f"{ASSETS}/"))
    return is_page and "text/html" in request.headers.get("accept", "")


def _shell_response(shell: Shell, context: Context, if_none_match: str | None) -> Response:
    content = render_shell(shell, _base_path(context))
    etag = f'"{digest_of(content)}"'
    headers = {**_headers(REVALIDATED), "ETag": etag}
    # The header may contain several ETags, and weak ones.
    if etag in (if_none_match or ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=HTML)


def _headers(caching: str) -> dict[str, str]:
    return {"Content-Security-Policy": POLICY, "Cache-Control": caching}


def _base_path(context: Context) -> str:
    return urlsplit(context.options.origins.public_url).path.rstrip("/")
