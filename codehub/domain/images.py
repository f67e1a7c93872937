"""The allow-list of images."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# What follows the name of an image: a tag, a digest, or both.
VERSION = r"(?::[^/:@]+)?(?:@[^/@]+)?"


@dataclass(frozen=True)
class AllowedImages:
    """Names of images; `*` stands for any characters, and a name without a version allows every version."""

    patterns: tuple[str, ...]

    def includes(self, image_ref: str) -> bool:
        return any(_matches(pattern, image_ref) for pattern in self.patterns)

    def describe(self) -> str:
        return ", ".join(self.patterns)


def allowed_images(names: Iterable[str]) -> AllowedImages:
    """Return the list without blanks and repetitions."""
    return AllowedImages(tuple(dict.fromkeys(name for each in names if (name := each.strip()))))


def _matches(pattern: str, image_ref: str) -> bool:
    # A port of the registry is not a version.
    has_version = ":" in pattern.rpartition("/")[2] or "@" in pattern
    expression = re.escape(pattern).replace(r"\*", ".*") + ("" if has_version else VERSION)
    return re.fullmatch(expression, image_ref) is not None
