"""Chaos tests run a tiny IDE instead of code-server."""

import os
from pathlib import Path

import pytest

from testkit.deployment import BIN


@pytest.fixture(autouse=True)
def tiny_ide(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the tiny code-server on the PATH of this process too, because its workers start instances."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    return BIN
