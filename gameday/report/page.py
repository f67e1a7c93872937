"""The template of the report's page."""

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #667080; --back: #ffffff; --edge: #d8dde4;
  --fault: #c2410c; --away: #a16207; --operation: #111827; --good: #15803d; --bad: #dc2626;
  --pending: #e2e5ea; --archived: #c4b5fd; --standby: #93c5fd; --running: #4ade80; --gone: #9ca3af; }
@media (prefers-color-scheme: dark) { :root {
  --text: #e6e9ee; --dim: #98a2b3; --back: #12161c; --edge: #303845;
  --fault: #fb923c; --away: #facc15; --operation: #f8fafc; --good: #4ade80; --bad: #f87171;
  --pending: #3a424e; --archived: #7c6bc4; --standby: #3b78b8; --running: #22a355; --gone: #566070; } }
@media print { :root { --text: #000; --back: #fff; --dim: #444; } details > * { display: block; }
  pre { white-space: pre-wrap; } h2 { break-after: avoid; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { font-size: 1.2rem; font-weight: 600; margin: .3rem 0 1rem; }
.good { color: var(--good); } .bad { color: var(--bad); fill: var(--bad); }
.dim { color: var(--dim); } .columns { display: flex; flex-wrap: wrap; gap: 0 3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem 1rem .15rem 0; border-bottom: 1px solid var(--edge); }
td, th { text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; }
pre, code { font: 12px/1.45 ui-monospace, monospace; } pre { overflow-x: auto; }
svg { width: 100%; height: auto; font: 10px system-ui, sans-serif; }
svg text { fill: var(--text); } .heading { font-size: 12px; font-weight: 600; }
.label { text-anchor: end; } .axis { text-anchor: middle; fill: var(--dim); }
.tick { stroke: var(--edge); stroke-width: .6; } .healed { stroke: var(--good); stroke-dasharray: 4 3; }
.violation { stroke: var(--bad); stroke-width: 1.5; }
.fault { fill: var(--fault); } .away { fill: var(--away); } .operation { fill: var(--operation); }
.PENDING { fill: var(--pending); } .ARCHIVED { fill: var(--archived); } .STANDBY { fill: var(--standby); }
.RUNNING { fill: var(--running); } .ERROR { fill: var(--bad); } .DELETING, .DELETED { fill: var(--gone); }
.key svg { width: 12px; height: 12px; vertical-align: -1px; }
.key span { margin-right: 1rem; white-space: nowrap; }
"""

PAGE = (
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Game day, seed {{ story.options.seed }}</title>
<style>"""
    + STYLE
    + """</style>
</head>
<body>
<h1>CodeHub game day</h1>
<p class="verdict {{ 'good' if story.held else 'bad' }}">{{ story.verdict }}
 through {{ story.faults|length }} faults</p>
<p>{{ story.began.strftime("%Y-%m-%d %H:%M UTC") }} · seed <code>{{ story.options.seed }}</code>
 · backend {{ story.options.backend }} · {{ "%g"|format(story.options.minutes) }} minutes of faults
 · {{ story.options.users }} users</p>
<p>To play it again: <code>{{ story.options.command }}</code></p>
<p class="dim">
{% for name, version in story.versions.items() %}
{{ name }} {{ version }}{{ " · " if not loop.last }}
{% endfor %}
</p>
{% for remark in story.remarks %}
<p class="dim">{{ remark }}</p>
{% endfor %}

{% if story.violations %}
<h2>Violations</h2>
{% for violation in story.violations %}
<p><strong class="bad">{{ violation.invariant.value }}</strong><br>
at {{ "%.1f"|format(violation.at) }} s{% if violation.workspace_id %},
 workspace <code>{{ violation.workspace_id }}</code>{% endif %}: {{ violation.words }}</p>
{% if violation.workspace_id in story.histories %}
<details><summary>Its history</summary>
<pre>{% for line in story.histories[violation.workspace_id] %}{{ line }}
{% endfor %}</pre></details>
{% endif %}
{% endfor %}
{% endif %}

<h2>What happened when</h2>
<p class="key">
<span><svg viewBox="0 0 10 10"><rect class="fault" width="10" height="10"/></svg> fault</span>
<span><svg viewBox="0 0 10 10"><rect class="away" width="10" height="10"/></svg> part away</span>
{% for phase in phases %}
<span><svg viewBox="0 0 10 10"><rect class="{{ phase }}" width="10" height="10"/></svg> {{ phase }}</span>
{% endfor %}
<span><svg viewBox="0 0 10 10"><rect class="operation" y="6" width="10" height="4"/></svg> operation</span>
<span class="dim">the dashed line: the last fault has ended, and everything has to heal</span>
</p>
{{ timeline|safe }}

<h2>Invariants</h2>
<table>
<tr><th>what must hold</th><th class="number">checks</th><th class="number">violations</th></tr>
{% for invariant, checks in story.checked.items() %}
{% set broken = story.violations|selectattr("invariant", "equalto", invariant)|list|length %}
<tr><td>{{ invariant.value }}</td><td class="number">{{ "{:,}".format(checks) }}</td>
<td class="number {{ 'bad' if broken else 'good' if checks else 'dim' }}">
{{ broken if checks else "not tested" }}</td></tr>
{% endfor %}
</table>

<div class="columns">
<div><h2>Faults</h2><table>
<tr><th>kind</th><th class="number">times</th></tr>
{% for kind, count in story.count_faults() %}
<tr><td>{{ kind }}</td><td class="number">{{ count }}</td></tr>
{% endfor %}
<tr><th>all</th><th class="number">{{ story.faults|length }}</th></tr>
</table></div>
<div><h2>Recoveries</h2><table>
<tr><th>part</th><th class="number">times</th><th class="number">p50 s</th><th class="number">max s</th></tr>
{% for name, span in story.spans().items() %}
<tr><td>{{ name }}</td><td class="number">{{ span.count }}</td>
<td class="number">{{ "%.1f"|format(span.median) }}</td>
<td class="number">{{ "%.1f"|format(span.longest) }}</td></tr>
{% endfor %}
</table></div>
<div><h2>What people did</h2><table>
{% for words, count in story.tally.items() %}
<tr><td>{{ words }}</td><td class="number">{{ "{:,}".format(count) }}</td></tr>
{% endfor %}
</table></div>
</div>
</body>
</html>"""
)
