"""Write the modules of the dashboard that repeat what Python says: `python -m api.dashboard.generate`."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from api.schemas.audit import AuditPage
from api.schemas.errors import ErrorBody
from api.schemas.history import Activity, ArchiveList, EventPage, OperationPage, ProgressView, StepList
from api.schemas.identity import CreatedToken, SessionList, SessionView, TokenList, UserPage
from api.schemas.network import EgressPage, NetworkLog, NetworkPolicy
from api.schemas.oidc import SignInBegun, SignInOptions
from api.schemas.ports import PortList, SharedPort
from api.schemas.system import BulkRecovered, SystemStatus
from api.schemas.totp import AuthenticatorSecret, AuthenticatorView, RecoveryCodes
from api.schemas.workspaces import Deletion, EditorList, WorkspacePage
from codehub import words

ASSETS = Path(__file__).parent / "assets"
HEADER = "/** Generated from {} by `make docs`; do not edit. */\n"
SENT = (
    AuditPage,
    EgressPage,
    EditorList,
    ErrorBody,
    ArchiveList,
    EventPage,
    OperationPage,
    StepList,
    CreatedToken,
    SessionList,
    SessionView,
    AuthenticatorSecret,
    AuthenticatorView,
    RecoveryCodes,
    SignInBegun,
    SignInOptions,
    TokenList,
    UserPage,
    Activity,
    NetworkLog,
    NetworkPolicy,
    PortList,
    SharedPort,
    ProgressView,
    BulkRecovered,
    SystemStatus,
    Deletion,
    WorkspacePage,
)
TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
Schema = Mapping[str, Any]


def render_words() -> str:
    """Return the words about workspaces. The meaning of a recover choice comes with the API's response."""
    tables = {
        "PHASES": {
            key: {"label": phase.label, "sentence": phase.sentence} for key, phase in words.PHASES.items()
        },
        "OPERATIONS": {key: work.badge for key, work in words.OPERATIONS.items()},
        "RECOVERING": words.RECOVERING.badge,
        "HEADING_TO": {key: work.badge for key, work in words.HEADING_TO.items()},
        "COMPLETED": words.COMPLETED,
        "RESULTS": words.RESULTS,
        "NEXT_CHANGES": words.NEXT_CHANGES,
        "STEPS": words.STEPS,
        "FAILURES": {
            key: {"headline": failure.headline, "happened": failure.happened}
            for key, failure in words.FAILURES.items()
        },
        "UNKNOWN_FAILURE": words.UNKNOWN_FAILURE.headline,
        "DELETION_FAILED": words.DELETION_FAILED,
        "OUT_OF_REACH": {"headline": words.OUT_OF_REACH.headline, "happened": words.OUT_OF_REACH.happened},
        "CHOICES": {key: choice.label for key, choice in words.CHOICES.items()},
        "CONDITIONS": {key: asdict(condition) for key, condition in words.CONDITIONS.items()},
        "NOT_OBSERVED": words.NOT_OBSERVED,
        "EVENTS": words.EVENTS,
        "STATE_REQUESTS": words.STATE_REQUESTS,
        "PURGE_REQUEST": words.PURGE_REQUEST,
        "CODEHUB_ACTORS": sorted(words.CODEHUB_ACTORS),
        "UNUSED": words.UNUSED,
        "IDES": words.IDES,
        "SIGN_IN_PROBLEMS": words.SIGN_IN_PROBLEMS,
        "AUDIENCES": words.AUDIENCES,
        "ONLY_OWNER": words.ONLY_OWNER,
        "ALWAYS_REFUSED": words.ALWAYS_REFUSED,
        "NOT_ENFORCED": words.NOT_ENFORCED,
        "AUDIT_ACTIONS": words.AUDIT_ACTIONS,
    }
    return HEADER.format("codehub/words.py") + "".join(
        f"\n{_type_of(table)}export const {name} = {json.dumps(table, indent=2, ensure_ascii=False)};\n"
        for name, table in tables.items()
    )


def _type_of(table: object) -> str:
    """Let the type checker accept any key: the API may send what this version does not know."""
    if not isinstance(table, Mapping):
        return ""
    value = next(iter(table.values()))
    if isinstance(value, str):
        return "/** @type {Record<string, string>} */\n"
    return "" if "reasons" in value else "/** @type {Record<string, Record<string, string>>} */\n"


def render_types() -> str:
    """Return the documents of the API as TypeScript interfaces, for the type checker only."""
    _, schema = models_json_schema([(model, "serialization") for model in SENT])
    return HEADER.format("api/schemas") + "".join(
        _interface(name, definition) for name, definition in sorted(schema["$defs"].items())
    )


def _interface(name: str, definition: Schema) -> str:
    if "enum" in definition:
        members = "".join(f"\n  | {json.dumps(each)}" for each in definition["enum"])
        return f"\nexport type {name} ={members};\n"
    fields = "".join(f"  {field}: {_type(each)};\n" for field, each in definition["properties"].items())
    return f"\nexport interface {name} {{\n{fields}}}\n"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return f"Array<{_type(schema['items'])}>"
        case "object":
            values = schema.get("additionalProperties", True)
            return f"Record<string, {'any' if values is True else _type(values)}>"
    return TYPES[schema["type"]]


FILES = {ASSETS / "words.js": render_words, ASSETS / "types.d.ts": render_types}

if __name__ == "__main__":
    for file, render in FILES.items():
        file.write_text(render(), "utf-8")
