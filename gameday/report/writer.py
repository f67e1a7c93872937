"""The report as one page of HTML that needs nothing else: to open, to keep, to print."""

import json
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from gameday.report.page import PAGE
from gameday.report.result import Story
from gameday.report.timeline import Timeline

_templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
PHASES = ("PENDING", "ARCHIVED", "STANDBY", "RUNNING", "ERROR", "DELETING", "DELETED")


def render_html(story: Story) -> str:
    page = _templates.from_string(PAGE)
    return page.render(story=story, timeline=Timeline(story).draw(), phases=PHASES) + "\n"


def write_report(story: Story, directory: Path) -> Path:
    """Return the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    seed = re.sub(r"\W+", "_", story.options.seed).strip("_")
    name = f"{story.began:%Y-%m-%d}-{story.options.backend}-{seed}"
    page = directory / f"{name}.html"
    page.write_text(render_html(story))
    (directory / f"{name}.json").write_text(render_json(story))
    return page


def render_json(story: Story) -> str:
    document = {
        **asdict(story),
        "held": story.held,
        "verdict": story.verdict,
        "command": story.options.command,
        "faults_by_kind": dict(story.count_faults()),
        "recovery_times": {name: asdict(span) for name, span in story.spans().items()},
    }
    return json.dumps(document, indent=2, default=_spell) + "\n"


def _spell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in a report.")
