"""Requests per second, latency and CPU of reading lists and single objects, alternating with JupyterHub."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.api.jupyterhub import JupyterHub
from benchmarks.api.load_generator import Responses, Target, send_requests
from benchmarks.api.population import Population
from benchmarks.report import Cell, Report, Section, milliseconds, percentile
from benchmarks.resource_usage import cpu_seconds
from benchmarks.servers import ApiProcess

CONCURRENCIES = (1, 8, 32)
WARM_UP_SECONDS = 0.3
# On a busy machine the last requests of a measurement take long; later rounds are skipped then.
BUDGET_SECONDS = 75.0
# The server needs one of the two cores; beyond this share the generator would be the bottleneck.
MAX_GENERATOR_CPU = 0.5
COLUMNS = ("", "conns", "req/s", "p50 ms", "p99 ms", "CPU ms", "with DB", "own CPU %")
LEGEND = (
    "CPU ms: of the server process, per request. with DB: including PostgreSQL; JupyterHub embeds SQLite.",
    "own CPU: share of one core used by the load generator. Medians of alternating rounds.",
)
RATIO_COLUMNS = ("CodeHub / JupyterHub", "conns", "req/s", "p50", "p99", "CPU", "CPU with DB")
RATIO_LEGEND = (
    "req/s: more is better. p50, p99, CPU: less is better.",
    "Medians of the ratios of each round. A CodeHub object is 1.5 kB of JSON, a JupyterHub object 0.24 kB.",
)


@dataclass
class Series:
    """The figures of one request at one concurrency."""

    name: str
    connections: int
    target: Target
    pid: int
    rounds: list[tuple[float, ...]] = field(default_factory=list)

    async def measure(self, seconds: float) -> None:
        if not self.rounds:
            await send_requests(self.target, self.connections, WARM_UP_SECONDS)
        before = cpu_seconds(self.pid)
        responses = await send_requests(self.target, self.connections, seconds)
        after = cpu_seconds(self.pid)
        server, database = (after[part] - before[part] for part in ("worker", "PostgreSQL"))
        self.rounds.append(_figures(responses, server, server + database))

    @property
    def medians(self) -> list[float]:
        return [statistics.median(column) for column in zip(*self.rounds, strict=True)]

    def row(self) -> Sequence[Cell]:
        per_second, *rest = self.medians
        return (self.name, self.connections, round(per_second), *rest)


def _figures(responses: Responses, server: float, with_database: float) -> tuple[float, ...]:
    count = len(responses.seconds)
    return (
        count / responses.wall_seconds,
        milliseconds(statistics.median(responses.seconds)),
        milliseconds(percentile([*responses.seconds, responses.seconds[-1]], 99)),
        round(server / count * 1000, 2),
        round(with_database / count * 1000, 2),
        round(responses.own_cpu_seconds / responses.wall_seconds * 100, 1),
    )


async def measure_requests(
    api: ApiProcess,
    population: Population,
    hub: JupyterHub | None,
    *,
    rounds: int,
    seconds: float,
    report: Report,
) -> None:
    ours = _series(api.pid, our_targets(api, population))
    theirs = _series(hub.pid, their_targets(hub)) if hub else []
    began, number = time.monotonic(), 0
    while number < rounds and time.monotonic() - began < BUDGET_SECONDS:
        number += 1
        report.log(f"requests, round {number} of {rounds}")
        for index, series in enumerate(ours):
            await series.measure(seconds)
            if theirs:
                await theirs[index].measure(seconds)
    report.log(f"{number} rounds completed")
    report.add(_section("CodeHub", ours))
    if hub:
        report.add(_section(f"JupyterHub {hub.version}, SQLite", theirs))
        rows = [_ratios(one, other) for one, other in zip(ours, theirs, strict=True)]
        report.add(Section("CodeHub compared with JupyterHub", RATIO_COLUMNS, rows, RATIO_LEGEND))


def _section(title: str, series: Sequence[Series]) -> Section:
    return Section(title, COLUMNS, [each.row() for each in series], (*LEGEND, *_generator_remarks(series)))


def our_targets(api: ApiProcess, population: Population) -> dict[str, Target]:
    one = population.caller.workspaces[0]
    return {
        "50 workspaces": Target(api.port, "/api/v1/workspaces?limit=50", population.caller.headers),
        "200 of all users": Target(api.port, "/api/v1/admin/workspaces?limit=200", population.admin.headers),
        "one workspace": Target(api.port, f"/api/v1/workspaces/{one}", population.caller.headers),
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


def _generator_remarks(series: Sequence[Series]) -> list[str]:
    busiest = max(each.medians[-1] for each in series)
    if busiest < MAX_GENERATOR_CPU * 100:
        return []
    return [f"The load generator used {busiest:.0f} % of a core: these figures are too low."]


def _ratios(ours: Series, theirs: Series) -> Sequence[Cell]:
    """Return medians of the ratios per round: other load on the machine affects both sides of a round."""
    pairs = zip(ours.rounds, theirs.rounds, strict=True)
    by_round = [[mine / max(other, 0.01) for mine, other in zip(*pair, strict=True)] for pair in pairs]
    ratios = [statistics.median(column) for column in zip(*by_round, strict=True)]
    return (f"{ours.name} / {theirs.name}", ours.connections, *(f"{ratio:.2f} x" for ratio in ratios[:5]))
