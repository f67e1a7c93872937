"""Renders templates as responses; all templates are compiled on import."""

import base64
import hashlib
import re
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from proxy.pages.formatting import format_time
from proxy.transport.routing import Response

_TEXTS = files("proxy") / "pages" / "templates"


_COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*$", re.MULTILINE | re.DOTALL)


def _read(name: str) -> str:
    """Read a file without its comments and indentation, which would only make each page larger."""
    lines = _COMMENT.sub("", (_TEXTS / name).read_text("utf-8")).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


_STYLE = re.sub(r"\s*([{};])\s*", r"\1", _read("style.css"))
_SCRIPT = _read("page.js")
_FAVICON = quote(_read("icon.svg").replace('"', "'").replace("\n", ""), safe="/:=' ")

HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)


def policy(form_targets: str) -> str:
    """Return the Content-Security-Policy of a page. Browsers also check redirects after a form."""
    forms = " ".join(["form-action 'self'", *form_targets.split()])
    return (
        f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; "
        f"img-src data:; {forms}; frame-ancestors 'none'; base-uri 'none'"
    )


_environment = Environment(
    loader=PackageLoader("proxy", "pages/templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.globals.update(style=_STYLE, script=_SCRIPT, favicon=_FAVICON)
_environment.filters["format_time"] = format_time
_templates = {name: _environment.get_template(name) for name in _environment.list_templates(["html"])}


def render(
    status: int, template: str, headers: tuple[tuple[str, str], ...] = (), /, **values: object
) -> Response:
    return Response(status, HEADERS + headers, _templates[template].render(values).encode())
