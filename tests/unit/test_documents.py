"""Documents stay readable: wrapped prose, and no reference to anything outside of the repository."""

import re

import pytest

from tests.unit.test_repository import ROOT, own_files

WIDTH = 100
GENERATED = {"docs/cli.md", "docs/configuration.md"}
# Written in pieces, so that this file does not contain what it looks for.
OUTSIDE = re.compile(rf"\b{'SP' + 'EC'}\b|{chr(0xA7)}\s?\d|\bDESIGN{'.'}md\b")


def pages() -> list[str]:
    names = (file.relative_to(ROOT).as_posix() for file in own_files() if file.suffix == ".md")
    return sorted(name for name in names if name not in GENERATED)


def prose_of(text: str) -> list[str]:
    """Return the lines that can be wrapped: no tables, code, headings, images or bare links."""
    without_code = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [
        line
        for line in without_code.splitlines()
        if not line.lstrip().startswith(("|", "#", "![")) and " " in line.strip(" -*")
    ]


@pytest.mark.parametrize("page", pages())
def test_prose_is_wrapped(page: str) -> None:
    lines = prose_of((ROOT / page).read_text())
    assert [line for line in lines if len(line) > WIDTH] == []


def test_long_prose_is_noticed() -> None:
    assert prose_of("| a table |\n" + "word " * 30) == ["word " * 30]


def test_nothing_refers_to_a_document_outside_of_the_repository() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in own_files()
        if file.suffix in {".py", ".md", ".js", ".html", ".toml", ".yml"}
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if OUTSIDE.search(line)
    ]
    assert found == []
