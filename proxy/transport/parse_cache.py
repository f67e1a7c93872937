"""Remembers what comes again."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

CAPACITY = 1024
MOST_MARKS = 8192


class ParseCache(Generic[Value]):
    """Keeps what came twice: what never repeats would displace what does, and be dear to keep."""

    __slots__ = ("_marks", "_values", "get")

    def __init__(self) -> None:
        self._values: dict[Hashable, Value] = {}
        self._marks: set[int] = set()
        # Not a method of ours: it is asked for every head that passes.
        self.get = self._values.get

    def offer(self, key: Hashable, value: Value) -> None:
        mark = hash(key)
        if mark in self._marks:
            if len(self._values) >= CAPACITY:
                self._values.clear()
            self._values[key] = value
        else:
            if len(self._marks) >= MOST_MARKS:
                self._marks.clear()
            self._marks.add(mark)
