"""What every connection works with."""

import asyncio
from collections.abc import Coroutine

from proxy.transport.forwarded_head import ForwardedHeads
from proxy.transport.request_head import RequestHeadReader
from proxy.transport.response_head import ResponseHeadReader
from proxy.transport.routing import Router
from proxy.transport.shared import Counters, Limits, Registry, Timeouts
from proxy.transport.upstream_pool import UpstreamPool


class Core:
    """The parts of one proxy; made once, in its event loop."""

    def __init__(self, router: Router, limits: Limits, timeouts: Timeouts, scheme: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.router = router
        self.limits = limits
        self.timeouts = timeouts
        self.counters = Counters()
        self.registry = Registry(limits)
        self.tasks: set[asyncio.Task[None]] = set()
        self.answers = ResponseHeadReader(limits.answer_head_bytes)
        self.reader = RequestHeadReader(limits.head_bytes, limits.fields)
        self.forwarding = ForwardedHeads(scheme)
        self.pool = UpstreamPool(
            max_resting=limits.resting_upstreams_per_key,
            idle=timeouts.upstream_idle,
            age=timeouts.upstream_age,
            connect=timeouts.connect,
        )

    def keep(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Begin work that the proxy waits for before it leaves."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task
