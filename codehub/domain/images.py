"""The allow-list of images."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# The version of an image: a tag, a digest, or both.
VERSION = r"(?::[^/:@]+)?(?:@[^/@]+)?"


@dataclass(frozen=True)
class AllowedImages:
    """Names of images; `*` matches any characters, and a name without a version allows every version."""

    patterns: tuple[str, ...]

    def includes(self, image_ref: str) -> bool:
        return any(_matches(pattern, image_ref) for pattern in self.patterns)

    def describe(self) -> str:
        return ", ".join(self.patterns)


def allowed_images(names: Iterable[str]) -> AllowedImages:
    """Parse the list; drop blanks and duplicates."""
    return AllowedImages(tuple(dict.fromkeys(name for each in names if (name := each.strip()))))


def _matches(pattern: str, image_ref: str) -> bool:
    # The port of a registry is not a version.
    has_version = ":" in pattern.rpartition("/")[2] or "@" in pattern
    expression = re.escape(pattern).replace(r"\*", ".*") + ("" if has_version else VERSION)
    return re.fullmatch(expression, image_ref) is not None
