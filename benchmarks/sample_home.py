"""A home like a developer's: many small files, a few big ones, text and binaries. Always the same."""

import random
from pathlib import Path

PROJECTS, FILES_PER_DIRECTORY = 7, 10
WORDS, LINES, WORDS_PER_LINE = 20_000, 100_000, 9
LETTERS = "etaoinshrdlucmfwypvbgkjqxz_"
# Sizes vary as they do in homes: most files are small, a few hold most of the bytes.
SPREAD = 1.6
INCOMPRESSIBLE = 0.12


def make_home(root: Path, files: int, total_bytes: int, seed: int = 0) -> int:
    """Write so many files of about so many bytes in all; return the bytes."""
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
