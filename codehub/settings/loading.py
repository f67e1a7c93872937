"""Loading settings from the environment; all errors are reported at once."""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from pydantic import SecretStr, ValidationError

from codehub.settings.concern import Concern
from codehub.settings.origin_rules import origins_problem
from codehub.settings.settings import Settings
from codehub.settings.types import CONFLICT, MASK, Allowed, SecretUrl, mask_url

# A lower value suggests REDIS_URL for DB_URL; a wrong suggestion is worse than none.
SIMILAR = 0.68

# A variable, and the others that must be set with it.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "CODEHUB_S3_ENDPOINT_URL": ("CODEHUB_S3_ACCESS_KEY", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_ACCESS_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_SECRET_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_ACCESS_KEY"),
    "CODEHUB_OIDC_ISSUER": ("CODEHUB_OIDC_CLIENT_ID",),
    "CODEHUB_OIDC_CLIENT_ID": ("CODEHUB_OIDC_ISSUER",),
    "CODEHUB_OIDC_CLIENT_SECRET": ("CODEHUB_OIDC_ISSUER", "CODEHUB_OIDC_CLIENT_ID"),
    "CODEHUB_OIDC_ALLOWED_GROUPS": ("CODEHUB_OIDC_ISSUER", "CODEHUB_OIDC_CLIENT_ID"),
    "CODEHUB_OIDC_ADMIN_GROUPS": ("CODEHUB_OIDC_ISSUER", "CODEHUB_OIDC_CLIENT_ID"),
    "CODEHUB_OIDC_PASSWORD_SIGN_IN": ("CODEHUB_OIDC_ISSUER", "CODEHUB_OIDC_CLIENT_ID"),
    "CODEHUB_TEMPORAL_API_KEY": ("CODEHUB_TEMPORAL_ADDRESS",),
    "CODEHUB_TEMPORAL_TLS": ("CODEHUB_TEMPORAL_ADDRESS",),
    "CODEHUB_TEMPORAL_TLS_CA_FILE": ("CODEHUB_TEMPORAL_ADDRESS",),
    "CODEHUB_TEMPORAL_TLS_CERT_FILE": ("CODEHUB_TEMPORAL_ADDRESS", "CODEHUB_TEMPORAL_TLS_KEY_FILE"),
    "CODEHUB_TEMPORAL_TLS_KEY_FILE": ("CODEHUB_TEMPORAL_ADDRESS", "CODEHUB_TEMPORAL_TLS_CERT_FILE"),
    "CODEHUB_TEMPORAL_TLS_SERVER_NAME": ("CODEHUB_TEMPORAL_ADDRESS",),
}

CONCERNS: Mapping[str, type[Concern]] = {
    name: concern
    for name, field in Settings.model_fields.items()
    if isinstance(concern := field.annotation, type) and issubclass(concern, Concern)
}


def _parts(annotation: object) -> Iterator[object]:
    """Yield everything nested in an annotation: members of unions, choices of literals, metadata."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


@dataclass(frozen=True)
class Variable:
    """An environment variable, and the field that it sets."""

    name: str
    concern: str
    field_name: str
    description: str
    parts: tuple[object, ...]

    @property
    def allowed(self) -> str:
        """What completes the sentence "must be ..."."""
        choices = [choice for part in self.parts for choice in _choices_in(part)]
        allowed = [part.text for part in self.parts if isinstance(part, Allowed)]
        return f"one of {', '.join(choices)}" if choices else allowed[0] if allowed else "text"

    def is_set(self, settings: Settings) -> bool:
        concern: Concern = getattr(settings, self.concern)
        return self.field_name in concern.model_fields_set

    def printable_value(self, settings: Settings) -> str | int | None:
        """Return the value in effect with secrets masked, or None if it is unset."""
        value = getattr(getattr(settings, self.concern), self.field_name)
        if isinstance(value, SecretStr):
            return MASK
        return value if isinstance(value, int | None) else str(value)

    def printable_text(self, text: str) -> str:
        """Return text from the environment, valid or not, with possible secrets masked."""
        if SecretStr in self.parts:
            return MASK
        return mask_url(text) if SecretUrl in self.parts or "://" in text else text


def _choices_in(part: object) -> Sequence[str]:
    """Return the choices in an annotation: literals, or members of an enumeration."""
    if isinstance(part, type) and issubclass(part, StrEnum):
        return [member.value for member in part]
    return [part] if isinstance(part, str) else []


VARIABLES: tuple[Variable, ...] = tuple(
    Variable(
        name=f"{concern.model_config['env_prefix']}{field_name.upper()}",
        concern=concern_name,
        field_name=field_name,
        description=field.description or "",
        parts=(*_parts(field.annotation), *field.metadata),
    )
    for concern_name, concern in CONCERNS.items()
    for field_name, field in concern.model_fields.items()
)


class SettingsError(Exception):
    """Invalid settings: one sentence each, without secrets."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Load the settings from the environment; raise SettingsError with all problems."""
    texts = _texts(os.environ if environment is None else environment)
    concerns: dict[str, Concern] = {}
    problems: list[str] = []
    for name, concern in CONCERNS.items():
        variables = {
            each.field_name: each for each in VARIABLES if each.concern == name and each.name in texts
        }
        try:
            concerns[name] = concern.model_validate(
                {field: texts[each.name] for field, each in variables.items()}
            )
        except ValidationError as error:
            problems += _explain(error, variables, texts)
    problems += _explain_missing(texts)
    # Raised outside of the handler, so that no traceback shows the error of pydantic.
    if problems:
        raise SettingsError(problems)
    settings = Settings.model_validate(concerns)
    if problem := origins_problem(settings):
        raise SettingsError([problem])
    return settings


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Return the unknown CODEHUB_ variables, each with the known name that was probably meant."""
    # Compared without the prefix, which makes all names look similar.
    known = {variable.name.removeprefix("CODEHUB_"): variable.name for variable in VARIABLES}
    suggestions: dict[str, str | None] = {}
    for name in sorted(os.environ if environment is None else environment):
        if name.startswith("CODEHUB_") and name not in known.values():
            matches = difflib.get_close_matches(name.removeprefix("CODEHUB_"), known, 1, SIMILAR)
            suggestions[name] = known[matches[0]] if matches else None
    return suggestions


def _texts(environment: Mapping[str, str]) -> dict[str, str]:
    # Compose files set unused variables to an empty string, and secrets from files end in a newline.
    stripped = {variable.name: environment.get(variable.name, "").strip() for variable in VARIABLES}
    return {name: text for name, text in stripped.items() if text}


def _explain(
    error: ValidationError, variables: Mapping[str, Variable], texts: Mapping[str, str]
) -> Iterator[str]:
    for details in error.errors(include_input=False, include_url=False):
        variable = variables.get(str(details["loc"][0]))
        # A default that is derived from a wrong value is not a separate mistake.
        if variable is not None:
            reason = details["msg"] if details["type"] == CONFLICT else f"must be {variable.allowed}"
            yield f"{variable.name}={variable.printable_text(texts[variable.name])}: {reason}"


def _explain_missing(texts: Mapping[str, str]) -> Iterator[str]:
    reasons = {needed: name for name in texts for needed in NEEDS.get(name, ()) if needed not in texts}
    for needed, name in reasons.items():
        yield f"{needed} is not set: it must be set when {name} is"
