"""Chromium in front of a release: a network of its own, from which connections lead to the ready proxies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser

from testkit.needs import need_program
from testkit.own_network import own_network
from tests.e2e.browser import running_browser
from tests.forwarding import Stream, forwarding
from tests.kubernetes.chart import PUBLIC_URL, Chart


@asynccontextmanager
async def browser_at(chart: Chart, directory: Path) -> AsyncIterator[Browser]:
    """Run a browser that finds the release at its public URL, and workspaces at names below localhost."""

    async def connect() -> Stream:
        proxy = urlsplit(await asyncio.to_thread(chart.proxy_url))
        return await asyncio.open_connection(proxy.hostname, proxy.port)

    with own_network() as network:
        program = network.wrap(need_program("chromium"), directory)
        async with (
            forwarding(network.listen(urlsplit(PUBLIC_URL).port or 0), connect),
            running_browser(program=program) as browser,
        ):
            yield browser
