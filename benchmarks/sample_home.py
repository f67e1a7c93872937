"""Write a home like a developer's: many small files, a few large ones, text and binaries."""

import random
from pathlib import Path

PROJECTS, FILES_PER_DIRECTORY = 7, 10
WORDS, LINES, WORDS_PER_LINE = 20_000, 100_000, 9
LETTERS = "etaoinshrdlucmfwypvbgkjqxz_"
# Sizes are distributed as in real homes: most files are small, and a few contain most of the bytes.
SPREAD = 1.6
INCOMPRESSIBLE = 0.12


def make_home(root: Path, files: int, total_bytes: int, seed: int = 0) -> int:
    """Write files with about this total size, identical in every run; return the exact size."""
    generator = random.Random(seed)  # noqa: S311 (no secret)
    lines = _lines(generator)
    written = 0
    for number, size in enumerate(_sizes(generator, files, total_bytes)):
        package = number // FILES_PER_DIRECTORY
        directory = root / f"project{package % PROJECTS}" / f"package{package}"
        directory.mkdir(parents=True, exist_ok=True)
        content = _content(generator, size, lines)
        (directory / f"file{number}").write_bytes(content)
        written += len(content)
    return written


def _sizes(generator: random.Random, files: int, total_bytes: int) -> list[int]:
    weights = [generator.lognormvariate(0, SPREAD) for _ in range(files)]
    scale = total_bytes / sum(weights)
    return [round(weight * scale) for weight in weights]


def _lines(generator: random.Random) -> list[bytes]:
    words = ["".join(generator.choices(LETTERS, k=generator.randint(2, 10))) for _ in range(WORDS)]
    return [(" ".join(generator.choices(words, k=WORDS_PER_LINE)) + "\n").encode() for _ in range(LINES)]


def _content(generator: random.Random, size: int, lines: list[bytes]) -> bytes:
    if generator.random() < INCOMPRESSIBLE:
        return generator.randbytes(size)
    text = b"".join(generator.choices(lines, k=size // len(lines[0]) + 1))
    while len(text) < size:
        text += text
    return text[:size]
