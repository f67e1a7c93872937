"""Rate limits: a token bucket for each caller, in the memory of this process."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

CAPACITY = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimiter:
    """Token buckets by key; the least recently used are dropped, so that memory is bounded."""

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float], capacity: int = CAPACITY
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._capacity = capacity
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> float | None:
        """Take a token and return None, or return how many seconds to wait."""
        now = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > self._capacity:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / self._per_second
        bucket.tokens -= 1
        return None
