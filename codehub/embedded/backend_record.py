"""Which backend has the homes of a data directory's workspaces: it stays the same from start to start."""

import json

from codehub.embedded.backends import LOCAL, SENTENCES
from codehub.embedded.data_dir import DataDir, read_json, write_private

KEY = "instance_backend"


def recorded_backend(data: DataDir) -> str | None:
    """The one that was used last; None if there was none yet."""
    recorded = read_json(data.backend).get(KEY)
    if recorded in SENTENCES:
        return str(recorded)
    # Before there was this record, there was only one backend, and its worker made this directory.
    return LOCAL if data.local_homes.exists() else None


def record_backend(data: DataDir, backend: str) -> None:
    write_private(data.backend, json.dumps({KEY: backend}, indent=2))
