"""Requests per second, times and CPU of reading lists and single objects, in turns with JupyterHub."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.api.jupyterhub import JupyterHub
from benchmarks.api.load_generator import Answers, Target, ask_for
from benchmarks.api.population import ApiProcess, Population
from benchmarks.report import Cell, Report, Section, milliseconds, percentile
from benchmarks.resource_usage import cpu_seconds

CONCURRENCIES = (1, 8, 32)
WARM_UP_SECONDS = 0.3
# On a busy machine requests under way at the end of a measurement take long; later rounds are left out then.
BUDGET_SECONDS = 75.0
# Of two cores the server may use one; beyond this the generator would be what is measured.
MOST_GENERATOR_CPU = 0.5
COLUMNS = ("", "conns", "req/s", "p50 ms", "p99 ms", "CPU ms", "with DB", "own CPU %")
LEGEND = (
    "CPU ms: of the server process per request. with DB: PostgreSQL too; JupyterHub has SQLite inside.",
    "own CPU: of one core, used by the load generator. Medians of the rounds, in turns.",
)
RATIO_COLUMNS = ("ours against JupyterHub", "conns", "req/s", "p50", "p99", "CPU", "CPU with DB")
RATIO_LEGEND = (
    "req/s: how many times as many. p50, p99, CPU: our share of JupyterHub's; less is better.",
    "Medians of the ratios of each round. One of our objects is 1.5 kB of JSON, one of theirs 0.24 kB.",
)


@dataclass
class Series:
    """One request at one concurrency, over the rounds."""

    name: str
    connections: int
    target: Target
    pid: int
    rounds: list[tuple[float, ...]] = field(default_factory=list)

    async def measure(self, seconds: float) -> None:
        if not self.rounds:
            await ask_for(self.target, self.connections, WARM_UP_SECONDS)
        before = cpu_seconds(self.pid)
        answers = await ask_for(self.target, self.connections, seconds)
        after = cpu_seconds(self.pid)
        server, database = (after[part] - before[part] for part in ("worker", "PostgreSQL"))
        self.rounds.append(_figures(answers, server, server + database))

    @property
    def medians(self) -> list[float]:
        return [statistics.median(column) for column in zip(*self.rounds, strict=True)]

    def row(self) -> Sequence[Cell]:
        per_second, *rest = self.medians
        return (self.name, self.connections, round(per_second), *rest)


def _figures(answers: Answers, server: float, with_database: float) -> tuple[float, ...]:
    count = len(answers.seconds)
    return (
        count / answers.wall_seconds,
        milliseconds(statistics.median(answers.seconds)),
        milliseconds(percentile([*answers.seconds, answers.seconds[-1]], 99)),
        round(server / count * 1000, 2),
        round(with_database / count * 1000, 2),
        round(answers.own_cpu_seconds / answers.wall_seconds * 100, 1),
    )


async def measure_requests(
    api: ApiProcess,
    people: Population,
    hub: JupyterHub | None,
    *,
    rounds: int,
    seconds: float,
    report: Report,
) -> None:
    ours = _series(api.pid, our_targets(api, people))
    theirs = _series(hub.pid, their_targets(hub)) if hub else []
    began, number = time.monotonic(), 0
    while number < rounds and time.monotonic() - began < BUDGET_SECONDS:
        number += 1
        report.say(f"requests, round {number} of {rounds}")
        for index, series in enumerate(ours):
            await series.measure(seconds)
            if theirs:
                await theirs[index].measure(seconds)
    report.say(f"rounds made: {number}")
    report.add(Section("CodeHub", COLUMNS, [each.row() for each in ours], (*LEGEND, *_too_busy(ours))))
    if hub:
        title = f"JupyterHub {hub.version}, SQLite"
        report.add(Section(title, COLUMNS, [each.row() for each in theirs], (*LEGEND, *_too_busy(theirs))))
        rows = [_ratios(one, other) for one, other in zip(ours, theirs, strict=True)]
        report.add(Section("CodeHub against JupyterHub", RATIO_COLUMNS, rows, RATIO_LEGEND))


def our_targets(api: ApiProcess, people: Population) -> dict[str, Target]:
    one = people.caller.workspaces[0]
    return {
        "50 workspaces": Target(api.port, "/api/v1/workspaces?limit=50", people.caller.headers),
        "200 of everybody's": Target(api.port, "/api/v1/admin/workspaces?limit=200", people.admin.headers),
        "one workspace": Target(api.port, f"/api/v1/workspaces/{one}", people.caller.headers),
    }


def their_targets(hub: JupyterHub) -> dict[str, Target]:
    return {
        "50 users": hub.target("/users?limit=50"),
        "200 users": hub.target("/users?limit=200"),
        "one user": hub.target("/users/user-00100"),
    }


def _series(pid: int, targets: dict[str, Target]) -> list[Series]:
    return [
        Series(name, connections, target, pid)
        for name, target in targets.items()
        for connections in CONCURRENCIES
    ]


def _too_busy(series: Sequence[Series]) -> list[str]:
    busiest = max(each.medians[-1] for each in series)
    if busiest < MOST_GENERATOR_CPU * 100:
        return []
    return [f"The load generator used {busiest:.0f} % of a core: these figures are too low."]


def _ratios(ours: Series, theirs: Series) -> Sequence[Cell]:
    """Round by round, since others use the machine too: both of a round met about the same of that."""
    pairs = zip(ours.rounds, theirs.rounds, strict=True)
    by_round = [[mine / max(other, 0.01) for mine, other in zip(*pair, strict=True)] for pair in pairs]
    ratios = [statistics.median(column) for column in zip(*by_round, strict=True)]
    return (f"{ours.name} / {theirs.name}", ours.connections, *(f"{ratio:.2f} x" for ratio in ratios[:5]))
