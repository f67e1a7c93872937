"""Logs are one JSON object per line."""

import json
import logging
import sys

import pytest

from codehub.logs import JsonFormatter, set_up_logging


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("worker", logging.WARNING, __file__, 1, message, arguments, None)
    made.__dict__.update(extra)
    return made


def test_a_line_is_one_json_object() -> None:
    line = JsonFormatter().format(record("%s of\n%s", 1, 2, fields={"workspace": "w"}))
    document = json.loads(line)
    assert "\n" not in line
    assert (document["level"], document["logger"], document["message"]) == ("warning", "worker", "1 of\n2")
    assert document["workspace"] == "w"
    assert document["time"].endswith("+00:00")


def test_an_exception_is_part_of_its_line() -> None:
    try:
        int("odd")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    assert "ValueError: invalid literal" in json.loads(JsonFormatter().format(made))["exception"]


@pytest.mark.parametrize(
    ("style", "expected"), [("json", '"message": "hello"'), ("text", "INFO    app: hello")]
)
def test_each_style_writes_to_standard_error(
    style: str, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = logging.getLogger().handlers[:]
    try:
        set_up_logging("info", style)  # type: ignore[arg-type]
        logging.getLogger("app").info("hello")
        logging.getLogger("httpx2").info("a request to Kubernetes")
        written = capfd.readouterr().err
        assert expected in written
        assert "a request" not in written
    finally:
        logging.getLogger().handlers[:] = before
