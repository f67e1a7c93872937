"""Write codehub.words as a module for the dashboard: python -m api.dashboard.words."""

import json
import sys
from dataclasses import asdict

from codehub import words

HEADER = "/** Generated from codehub/words.py by `make docs`; do not edit. */\n"


def render() -> str:
    """Return the text of assets/words.js. The API itself tells what each recover choice means and costs."""
    tables = {
        "PHASES": {
            key: {"label": phase.label, "sentence": phase.sentence} for key, phase in words.PHASES.items()
        },
        "OPERATIONS": {key: work.badge for key, work in words.OPERATIONS.items()},
        "RECOVERING": words.RECOVERING.badge,
        "HEADING_TO": {key: work.badge for key, work in words.HEADING_TO.items()},
        "COMPLETED": words.COMPLETED,
        "RESULTS": words.RESULTS,
        "NEXT_CHANGES": words.NEXT_CHANGES,
        "STEPS": words.STEPS,
        "FAILURES": {
            key: {"headline": failure.headline, "happened": failure.happened}
            for key, failure in words.FAILURES.items()
        },
        "UNKNOWN_FAILURE": words.UNKNOWN_FAILURE.headline,
        "DELETION_FAILED": words.DELETION_FAILED,
        "CHOICES": {key: choice.label for key, choice in words.CHOICES.items()},
        "CONDITIONS": {key: asdict(condition) for key, condition in words.CONDITIONS.items()},
        "NOT_OBSERVED": words.NOT_OBSERVED,
        "EVENTS": words.EVENTS,
        "STATE_REQUESTS": words.STATE_REQUESTS,
        "PURGE_REQUEST": words.PURGE_REQUEST,
        "CODEHUB_ACTORS": sorted(words.CODEHUB_ACTORS),
        "UNUSED": words.UNUSED,
        "IDES": words.IDES,
    }
    return HEADER + "".join(_export(name, table) for name, table in tables.items())


def _export(name: str, table: object) -> str:
    return f"\nexport const {name} = {json.dumps(table, indent=2, ensure_ascii=False)};\n"


if __name__ == "__main__":
    sys.stdout.write(render())
