"""`python -m testkit.prose --seed 14`: random docstrings, comments and UI texts, to judge how they read."""

import argparse
import ast
import io
import random
import re
import shutil
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
GIT = shutil.which("git") or "git"
PRODUCT = (
    "activities",
    "api",
    "cli",
    "codehub",
    "egress",
    "gameday",
    "proxy",
    "storage_job",
    "worker",
    "workflows",
)
DIRECTIVE = re.compile(r"#\s*(noqa|type:|pragma|!)")
# A text for people in JavaScript starts with a capitalized word and has at least two words.
UI_TEXT = re.compile(r"""(["'`])([A-Z][a-z]+ [^"'`\n]*)\1""")


def tracked(*suffixes: str) -> list[Path]:
    listing = subprocess.run(
        (GIT, "ls-files", *PRODUCT), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listing.stdout.splitlines() if name.endswith(suffixes)]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield node.lineno, text


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token.start[0], token.string.lstrip("# ")


def ui_texts(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for match in UI_TEXT.finditer(line):
            yield number, match[2]


KINDS = {
    "docstrings": (docstrings, (".py",)),
    "comments": (comments, (".py",)),
    "UI texts": (ui_texts, (".js",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="testkit.prose", description=__doc__)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    for kind, (extract, suffixes) in KINDS.items():
        found = [(path, *each) for path in tracked(*suffixes) for each in extract(path)]
        print(f"{kind} ({len(found)})")  # noqa: T201
        for path, line, text in random.Random(options.seed).sample(found, options.count):  # noqa: S311
            print(f"  {path.relative_to(ROOT)}:{line}: {' '.join(text.split())}")  # noqa: T201


if __name__ == "__main__":
    main()
