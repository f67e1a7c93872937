"""The files of the dashboard, read once on import.

Their URLs contain a digest of all their content, so browsers can cache them forever and never mix versions.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

ASSETS = "/assets"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
DIGEST_LENGTH = 16
_IMPORT = re.compile(r'^(?:import|export|\}) .*?"(\.[^"]+)";$', re.MULTILINE)
_ROOT = files("api") / "dashboard"


@dataclass(frozen=True)
class Asset:
    """One file as it is sent."""

    content: bytes
    media_type: str


@dataclass(frozen=True)
class Shell:
    """One page; its script fills it. It is the same for everybody."""

    title: str
    script: str


def digest_of(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:DIGEST_LENGTH]


def _read(directory: Traversable, prefix: str = "") -> dict[str, Asset]:
    found: dict[str, Asset] = {}
    for entry in sorted(directory.iterdir(), key=lambda each: each.name):
        name = prefix + entry.name
        if entry.is_dir():
            found |= _read(entry, f"{name}/")
        elif media_type := MEDIA_TYPES.get(name[name.rfind(".") :]):
            found[name] = Asset(entry.read_bytes(), media_type)
    return found


FILES = _read(_ROOT / "assets")
DIGEST = digest_of(*(name.encode() + asset.content for name, asset in FILES.items()))
_STYLES = [name for name in FILES if name.endswith(".css")]
_SHELL = Template((_ROOT / "shell.html").read_text("utf-8"))
_NOT_FOUND = Template((_ROOT / "not_found.html").read_text("utf-8"))


@cache
def render_shell(shell: Shell, base_path: str) -> bytes:
    """Render a page that names all its scripts, so that the browser loads them in parallel."""
    modules = sorted(_imported(shell.script))
    assets = f"{base_path}{ASSETS}/{DIGEST}"
    return _SHELL.substitute(
        title=shell.title,
        base=base_path,
        assets=assets,
        script=shell.script,
        styles=_links("stylesheet", assets, _STYLES),
        preloads=_links("modulepreload", assets, modules),
    ).encode()


@cache
def render_not_found(base_path: str) -> bytes:
    assets = f"{base_path}{ASSETS}/{DIGEST}"
    styles = _links("stylesheet", assets, _STYLES)
    return _NOT_FOUND.substitute(base=base_path, assets=assets, styles=styles).encode()


def _links(relation: str, assets: str, names: list[str]) -> str:
    return "\n".join(f'<link rel="{relation}" href="{assets}/{name}">' for name in names)


def _imported(script: str) -> set[str]:
    found: set[str] = set()
    waiting = [script]
    while waiting:
        name = waiting.pop()
        for path in _IMPORT.findall(FILES[name].content.decode()):
            module = _resolve(name, path)
            if module not in found:
                found.add(module)
                waiting.append(module)
    return found


def _resolve(importer: str, path: str) -> str:
    parts = importer.split("/")[:-1]
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
