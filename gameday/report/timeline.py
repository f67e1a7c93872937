"""The timeline as SVG: faults by kind, unavailable parts, and workspaces."""

from collections.abc import Iterator
from html import escape

from codehub.domain.states import Phase
from codehub.words import PHASES
from gameday.report.result import GameResult

LABEL_WIDTH = 170
WIDTH = 1000
LANE_HEIGHT = 15
MARK_HEIGHT = 10
HEADING_HEIGHT = 24
AXIS_HEIGHT = 22
# Short faults must be visible too.
SMALLEST_WIDTH = 1.6
TICKS = (5, 10, 30, 60, 120, 300, 600, 1800, 3600)
MOST_TICKS = 14


class Timeline:
    """Draws the lanes from top to bottom."""

    def __init__(self, result: GameResult) -> None:
        self._result = result
        self._seconds = max(result.seconds, 1.0)
        self._y = 0.0
        self._parts: list[str] = []

    def draw(self) -> str:
        self._draw_faults()
        self._draw_recoveries()
        self._draw_workspaces()
        height = self._y + AXIS_HEIGHT
        lines = "".join(self._draw_vertical_lines())
        return (
            f'<svg viewBox="0 0 {LABEL_WIDTH + WIDTH + 10} {height:.0f}" role="img" '
            f'aria-label="Faults, recoveries and workspaces over time">{lines}{"".join(self._parts)}</svg>'
        )

    def _draw_faults(self) -> None:
        self._heading("Faults")
        for kind, count in self._result.count_faults():
            self._label(f"{kind} ({count})")
            for fault in self._result.faults:
                if fault.kind == kind:
                    self._bar("fault", fault.at, fault.at + fault.seconds, f"{fault.at:.1f} s: {fault.what}")
            self._y += LANE_HEIGHT

    def _draw_recoveries(self) -> None:
        self._heading("Unavailable parts")
        for name, stats in self._result.recovery_stats().items():
            self._label(f"{name} ({stats.count})")
            for each in self._result.recoveries:
                if each.name == name:
                    self._bar("unavailable", each.at, each.at + each.seconds, f"{name}: {each.seconds:.1f} s")
            self._y += LANE_HEIGHT

    def _draw_workspaces(self) -> None:
        self._heading("Workspaces: phase above, operation below")
        broken = {violation.workspace_id for violation in self._result.violations}
        for lane in self._result.lanes:
            self._label(f"{lane.name} {lane.workspace_id[:8]}", "bad" if lane.workspace_id in broken else "")
            for each in lane.phases:
                self._bar(f"phase {each.what}", each.begin, each.end, PHASES[Phase(each.what)].label)
            for each in lane.operations:
                self._bar("operation", each.begin, each.end, each.what, top=0.7)
            self._y += LANE_HEIGHT

    def _draw_vertical_lines(self) -> Iterator[str]:
        """Draw lines through all lanes: the time scale, the last fault, the violations."""
        step = next((each for each in TICKS if self._seconds / each <= MOST_TICKS), TICKS[-1])
        for second in range(0, int(self._seconds) + 1, step):
            yield self._line("tick", second)
            x = self._x(second)
            yield f'<text class="axis" x="{x:.1f}" y="{self._y + 15:.0f}">{_minutes(second)}</text>'
        yield self._line("healed", self._result.faults_ended, "The last fault has ended.")
        for each in self._result.violations:
            yield self._line("violation", each.at, each.words)

    def _line(self, kind: str, second: float, title: str = "") -> str:
        x = self._x(second)
        tooltip = f"<title>{escape(title)}</title>" if title else ""
        return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{self._y:.0f}">{tooltip}</line>'

    def _heading(self, words: str) -> None:
        self._y += HEADING_HEIGHT
        self._parts.append(f'<text class="heading" x="0" y="{self._y - 7:.0f}">{escape(words)}</text>')

    def _label(self, words: str, kind: str = "") -> None:
        self._parts.append(
            f'<text class="label {kind}" x="{LABEL_WIDTH - 8}" y="{self._y + 10:.1f}">{escape(words)}</text>'
        )

    def _bar(self, kind: str, begin: float, end: float, title: str, top: float = 0.0) -> None:
        x = self._x(begin)
        width = max(self._x(end) - x, SMALLEST_WIDTH)
        y, height = self._y + 1 + top * MARK_HEIGHT, MARK_HEIGHT * (1 - top)
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def _x(self, second: float) -> float:
        return LABEL_WIDTH + min(max(second, 0.0), self._seconds) / self._seconds * WIDTH


def _minutes(second: int) -> str:
    return f"{second // 60}:{second % 60:02d}"
