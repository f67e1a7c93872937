"""The picture of a game: faults by kind, parts that were away, and every workspace below, over time."""

from collections.abc import Iterator
from html import escape

from gameday.report.result import Story

LABEL_WIDTH = 170
WIDTH = 1000
LANE_HEIGHT = 15
MARK_HEIGHT = 10
HEADING_HEIGHT = 24
AXIS_HEIGHT = 22
# A fault of no length is still seen.
LEAST_WIDTH = 1.6
TICKS = (5, 10, 30, 60, 120, 300, 600, 1800, 3600)
MOST_TICKS = 14


class Timeline:
    """Draws from top to bottom."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._seconds = max(story.seconds, 1.0)
        self._y = 0.0
        self._parts: list[str] = []

    def draw(self) -> str:
        self._draw_faults()
        self._draw_recoveries()
        self._draw_workspaces()
        height = self._y + AXIS_HEIGHT
        lines = "".join(self._draw_moments())
        return (
            f'<svg viewBox="0 0 {LABEL_WIDTH + WIDTH + 10} {height:.0f}" role="img" '
            f'aria-label="Faults, recoveries and workspaces over time">{lines}{"".join(self._parts)}</svg>'
        )

    def _draw_faults(self) -> None:
        self._heading("Faults")
        for kind, count in self._story.count_faults():
            self._label(f"{kind} ({count})")
            for fault in self._story.faults:
                if fault.kind == kind:
                    self._bar("fault", fault.at, fault.at + fault.seconds, f"{fault.at:.1f} s: {fault.what}")
            self._y += LANE_HEIGHT

    def _draw_recoveries(self) -> None:
        self._heading("Away until ready again")
        for name, span in self._story.spans().items():
            self._label(f"{name} ({span.count})")
            for each in self._story.recoveries:
                if each.name == name:
                    self._bar("away", each.at, each.at + each.seconds, f"{name}: {each.seconds:.1f} s")
            self._y += LANE_HEIGHT

    def _draw_workspaces(self) -> None:
        self._heading("Workspaces: phase, and operation below it")
        broken = {violation.workspace_id for violation in self._story.violations}
        for lane in self._story.lanes:
            self._label(f"{lane.name} {lane.workspace_id[:8]}", "bad" if lane.workspace_id in broken else "")
            for each in lane.phases:
                self._bar(f"phase {each.what}", each.begin, each.end, each.what)
            for each in lane.operations:
                self._bar("operation", each.begin, each.end, each.what, top=0.7)
            self._y += LANE_HEIGHT

    def _draw_moments(self) -> Iterator[str]:
        """Lines through all lanes: the time, the last fault, the violations."""
        step = next((each for each in TICKS if self._seconds / each <= MOST_TICKS), TICKS[-1])
        for second in range(0, int(self._seconds) + 1, step):
            yield self._line("tick", second)
            x = self._x(second)
            yield f'<text class="axis" x="{x:.1f}" y="{self._y + 15:.0f}">{_clock(second)}</text>'
        yield self._line("healed", self._story.faults_ended, "The last fault has ended.")
        for each in self._story.violations:
            yield self._line("violation", each.at, each.words)

    def _line(self, kind: str, second: float, title: str = "") -> str:
        x = self._x(second)
        told = f"<title>{escape(title)}</title>" if title else ""
        return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{self._y:.0f}">{told}</line>'

    def _heading(self, words: str) -> None:
        self._y += HEADING_HEIGHT
        self._parts.append(f'<text class="heading" x="0" y="{self._y - 7:.0f}">{escape(words)}</text>')

    def _label(self, words: str, kind: str = "") -> None:
        self._parts.append(
            f'<text class="label {kind}" x="{LABEL_WIDTH - 8}" y="{self._y + 10:.1f}">{escape(words)}</text>'
        )

    def _bar(self, kind: str, begin: float, end: float, title: str, top: float = 0.0) -> None:
        x = self._x(begin)
        width = max(self._x(end) - x, LEAST_WIDTH)
        y, height = self._y + 1 + top * MARK_HEIGHT, MARK_HEIGHT * (1 - top)
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def _x(self, second: float) -> float:
        return LABEL_WIDTH + min(max(second, 0.0), self._seconds) / self._seconds * WIDTH


def _clock(second: int) -> str:
    return f"{second // 60}:{second % 60:02d}"
