"""Plot requests per second and CPU per request as bars in an SVG."""

from collections.abc import Iterable, Sequence
from html import escape

from benchmarks.proxy.results import OURS, Results, cpu, rate
from benchmarks.proxy.workloads import MANY

Bars = Sequence[tuple[str, float]]
ROW, BAR, TOP, LABELS, LONGEST, PANEL = 26, 16, 58, 92, 230, 400
# Draw a background, because the page may use another color scheme than the browser.
STYLE = """
svg { --page: #fff; --text: #1f2328; --soft: #59636e; --bar: #b6bec8; --ours: #0969da; }
@media (prefers-color-scheme: dark) {
  svg { --page: #0d1117; --text: #e6edf3; --soft: #9198a1; --bar: #4a525c; --ours: #4493f8; }
}
.page { fill: var(--page); } .bar { fill: var(--bar); } .ours { fill: var(--ours); }
text { fill: var(--text); font: 12px system-ui, sans-serif; }
.title { font-weight: 600; font-size: 13px; } .soft { fill: var(--soft); font-size: 11px; }
""".strip()


def plot(results: Results) -> str:
    """Return an SVG with both panels, each sorted from best to worst."""
    names = results.names(MANY)
    rates = [(name, value) for name in names if (value := results.median(MANY, name, rate))]
    costs = [(name, value) for name in names if (value := results.median(MANY, name, cpu))]
    height = TOP + ROW * max(len(rates), len(costs)) + 8
    panels = (
        *_panel(
            20, "Requests per second", f"{MANY}; more is better", sorted(rates, key=_value, reverse=True)
        ),
        *_panel(20 + PANEL, "CPU, µs per request", f"{MANY}; less is better", sorted(costs, key=_value)),
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * PANEL} {height}" role="img" '
        f'aria-label="Requests per second and CPU per request of each proxy">'
    )
    page = f'<rect class="page" width="{2 * PANEL}" height="{height}" rx="6"/>'
    return "\n".join((head, f"<style>{STYLE}</style>", page, *panels, "</svg>", ""))


def _value(bar: tuple[str, float]) -> float:
    return bar[1]


def _panel(left: int, title: str, remark: str, bars: Bars) -> Iterable[str]:
    yield f'<text class="title" x="{left}" y="24">{escape(title)}</text>'
    yield f'<text class="soft" x="{left}" y="41">{escape(remark)}</text>'
    most = max((value for _, value in bars), default=1.0)
    for number, (name, value) in enumerate(bars):
        top, width = TOP + number * ROW, max(1, round(value / most * LONGEST))
        middle, start = top + BAR - 4, left + LABELS
        style = "ours" if name == OURS else "bar"
        yield f'<text x="{start - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect class="{style}" x="{start}" y="{top}" width="{width}" height="{BAR}" rx="2"/>'
        yield f'<text x="{start + width + 6}" y="{middle}">{value:,.0f}</text>'
