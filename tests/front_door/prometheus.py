"""Reads the metrics of a proxy process."""

from collections.abc import Mapping

import aiohttp
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


async def scrape(port: int) -> Mapping[str, Metric]:
    """Return the metric families by name, parsed as Prometheus does."""
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as response:
        assert response.status == 200
        return {each.name: each for each in text_string_to_metric_families(await response.text())}


async def sample(port: int, name: str, **labels: str) -> float:
    """Return the value of a sample, or 0 if its labels never occurred."""
    family = (await scrape(port))[f"codehub_proxy_{name}"]
    return sum(
        sample.value
        for sample in family.samples
        if sample.labels == labels and not sample.name.endswith("_created")
    )
