"""Write the report: an HTML page without external resources, and a JSON document."""

import json
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codehub.words import PHASES
from gameday.report.result import GameResult
from gameday.report.timeline import Timeline

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PHASE_LABELS = {phase.value: words.label for phase, words in PHASES.items()}


def write_report(result: GameResult, directory: Path) -> Path:
    """Write both files and return the path of the page."""
    directory.mkdir(parents=True, exist_ok=True)
    seed = re.sub(r"\W+", "_", result.options.seed).strip("_")
    name = f"{result.began:%Y-%m-%d}-{result.options.backend}-{seed}"
    page = directory / f"{name}.html"
    page.write_text(render_html(result))
    (directory / f"{name}.json").write_text(render_json(result))
    return page


def render_html(result: GameResult) -> str:
    page = _templates.get_template("page.html")
    return page.render(result=result, timeline=Timeline(result).draw(), phases=PHASE_LABELS) + "\n"


def render_json(result: GameResult) -> str:
    document = {
        **asdict(result),
        "held": result.held,
        "verdict": result.verdict,
        "command": result.options.command,
        "faults_by_kind": dict(result.count_faults()),
        "recovery_times": {name: asdict(stats) for name, stats in result.recovery_stats().items()},
    }
    return json.dumps(document, indent=2, default=_to_json) + "\n"


def _to_json(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"A report cannot contain a {type(value).__name__}.")
