"""Logging: text for people, or one JSON object per line for machines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON; `extra={"fields": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


def set_up_logging(level: str, style: Literal["json", "text"]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # These libraries are noisy at INFO.
    for chatty in ("botocore", "aiobotocore", "boto3", "urllib3", "aioboto3", "httpx2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
