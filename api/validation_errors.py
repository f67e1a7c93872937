"""Validation errors in plain sentences: what Pydantic says is not for people."""

from collections.abc import Mapping, Sequence
from typing import Any

# A request may have thousands of wrong fields with very long names.
MAX_FIELDS = 20
MAX_NAME_LENGTH = 100
MAX_PATH_LENGTH = 200
MAX_IN_MESSAGE = 5

# By Pydantic's error type; its context fills in the braces.
PREDICATES: Mapping[str, str] = {
    "missing": "is required",
    "model_attributes_type": "must be a JSON object",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters long",
    "string_pattern_mismatch": "contains characters that are not allowed, or is too long",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number with fewer digits",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "uuid_type": "must be an id, as the API shows it",
    "uuid_parsing": "must be an id, as the API shows it",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} items",
    # Raised by our own validators, which say it in the same form.
    "value_error": "{error}",
}
DEFAULT = "is not valid"
SOURCES = {"query": "Query parameter ", "path": "Path parameter ", "header": "Header ", "body": ""}


def describe(errors: Sequence[Any]) -> tuple[str, list[dict[str, str]]]:
    """Return one message for a person, and the path and message of each wrong field."""
    fields = [
        {"field": ".".join(map(str, error["loc"]))[:MAX_PATH_LENGTH], "message": sentence_for(error)}
        for error in errors[:MAX_FIELDS]
    ]
    return "Invalid request: " + " ".join(each["message"] for each in fields[:MAX_IN_MESSAGE]), fields


def sentence_for(error: Mapping[str, Any]) -> str:
    """Return a sentence that names the field and says what it must be."""
    subject = _subject(error["loc"])
    if error["type"] == "extra_forbidden":
        return f"Unknown field {subject}."
    context = {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    return f"{subject} {PREDICATES.get(error['type'], DEFAULT).format_map(context)}."


def _subject(location: Sequence[str | int]) -> str:
    source, *path = location
    if not path:
        return f"The {source}"
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return f"{SOURCES.get(str(source), '')}`{name[:MAX_NAME_LENGTH]}`"


def _plain(value: object) -> str:
    return str(value).replace("'", "`")
