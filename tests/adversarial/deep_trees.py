"""Trees that are too deep for recursion, for one open file per level and for a path."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def make_deep(root: Path, name: str, levels: int, innermost: str = "innermost") -> None:
    """Nest directories of this name, with a file in the innermost one."""
    root.mkdir(exist_ok=True)
    with _inside(root):
        for _ in range(levels):
            Path(name).mkdir()
            os.chdir(name)
        Path(innermost).write_text("innermost")


def depth_of(root: Path, name: str, innermost: str = "innermost") -> int:
    """Return how many directories of this name are nested; the innermost one must contain its file."""
    levels = 0
    with _inside(root):
        while Path(name).is_dir():
            os.chdir(name)
            levels += 1
        assert Path(innermost).read_text() == "innermost"
    return levels


@contextlib.contextmanager
def removed_at_the_end(root: Path) -> Iterator[None]:
    """Remove the tree after the block, because pytest cannot remove trees that deep."""
    try:
        yield
    finally:
        subprocess.run(("/usr/bin/env", "rm", "-rf", "--", root), check=True)


@contextlib.contextmanager
def _inside(root: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(root)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)
