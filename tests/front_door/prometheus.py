"""What a proxy process tells Prometheus."""

from collections.abc import Mapping

import aiohttp
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


async def families(port: int) -> Mapping[str, Metric]:
    """By name, read as Prometheus would."""
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as answer:
        assert answer.status == 200
        return {each.name: each for each in text_string_to_metric_families(await answer.text())}


async def figure(port: int, name: str, **labels: str) -> float:
    """One sample; 0 for a reason that has never been one."""
    family = (await families(port))[f"codehub_proxy_{name}"]
    return sum(
        sample.value
        for sample in family.samples
        if sample.labels == labels and not sample.name.endswith("_created")
    )
