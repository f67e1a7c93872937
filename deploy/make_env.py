"""`make env`: write .env from .env.example with generated passwords and keys, unless it exists."""

import os
import re
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EMPTY_SECRET = re.compile(r"^(\w+_(?:PASSWORD|KEY))=$", re.MULTILINE)
BYTES = 24
OWNER_ONLY = 0o600


def main(arguments: list[str]) -> int:
    target = Path(arguments[0]) if arguments else ROOT / ".env"
    # Hexadecimal, because passwords become part of URLs and configuration files.
    text = EMPTY_SECRET.sub(
        lambda found: f"{found[1]}={secrets.token_hex(BYTES)}", (ROOT / ".env.example").read_text()
    )
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    except FileExistsError:
        sys.stderr.write(
            f"{target} already exists, and the servers use its passwords. "
            "To start over, remove it together with the volumes.\n"
        )
        return 1
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    sys.stdout.write(f"Wrote {target}. Review it, then run: docker compose up -d\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
