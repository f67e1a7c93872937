"""The report as one page of HTML that needs nothing else: to open, to keep, to print."""

from jinja2 import Environment, StrictUndefined

from gameday.report.page import PAGE
from gameday.report.story import Story
from gameday.report.timeline import Timeline

_templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
PHASES = ("PENDING", "ARCHIVED", "STANDBY", "RUNNING", "ERROR", "DELETING", "DELETED")


def render_html(story: Story) -> str:
    page = _templates.from_string(PAGE)
    return page.render(story=story, timeline=Timeline(story).draw(), phases=PHASES) + "\n"
