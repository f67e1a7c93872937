"""From the environment to settings, with all that is wrong told at once."""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from pydantic import SecretStr, ValidationError

from codehub.settings.concerns import Concern, Settings
from codehub.settings.types import CONFLICT, MASK, SecretUrl, Words, mask_url

# Lower, and DB_URL is taken for REDIS_URL; a wrong suggestion is worse than none.
SIMILAR = 0.68

# A variable that makes no sense unless the others are set too.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "CODEHUB_S3_ENDPOINT_URL": ("CODEHUB_S3_ACCESS_KEY", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_ACCESS_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_SECRET_KEY"),
    "CODEHUB_S3_SECRET_KEY": ("CODEHUB_S3_ENDPOINT_URL", "CODEHUB_S3_ACCESS_KEY"),
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
    """Everything nested in an annotation: the members of unions, the choices of literals, the notes."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


@dataclass(frozen=True)
class Variable:
    """An environment variable and the field that it fills."""

    name: str
    concern: str
    field_name: str
    description: str
    parts: tuple[object, ...]

    @property
    def allowed(self) -> str:
        """The words that complete "must be ..."."""
        choices = [part for part in self.parts if isinstance(part, str)]
        words = [part.text for part in self.parts if isinstance(part, Words)]
        return f"one of {', '.join(choices)}" if choices else words[0] if words else "text"

    def is_set(self, settings: Settings) -> bool:
        concern: Concern = getattr(settings, self.concern)
        return self.field_name in concern.model_fields_set

    def printable_value(self, settings: Settings) -> str | int | None:
        """The value in effect, with what is secret in it masked; None when unset."""
        value = getattr(getattr(settings, self.concern), self.field_name)
        if isinstance(value, SecretStr):
            return MASK
        return value if isinstance(value, int | None) else str(value)

    def printable_text(self, text: str) -> str:
        """Text from the environment, right or wrong, with what may be secret in it masked."""
        if SecretStr in self.parts:
            return MASK
        return mask_url(text) if SecretUrl in self.parts or "://" in text else text


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
    """One sentence for each wrong setting; none of them contains a secret."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the environment, or raise SettingsError with all that is wrong."""
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
    # Raised outside of the handler, so that no traceback goes on about pydantic's own error.
    if problems:
        raise SettingsError(problems)
    return Settings.model_validate(concerns)


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """The CODEHUB_ variables that nobody reads, each with the known name that was probably meant."""
    # Compared without the prefix, which alone would make every name look similar.
    known = {variable.name.removeprefix("CODEHUB_"): variable.name for variable in VARIABLES}
    suggestions: dict[str, str | None] = {}
    for name in sorted(os.environ if environment is None else environment):
        if name.startswith("CODEHUB_") and name not in known.values():
            matches = difflib.get_close_matches(name.removeprefix("CODEHUB_"), known, 1, SIMILAR)
            suggestions[name] = known[matches[0]] if matches else None
    return suggestions


def _texts(environment: Mapping[str, str]) -> dict[str, str]:
    # Compose files set unused variables to nothing, and secrets read from files end in a newline.
    stripped = {variable.name: environment.get(variable.name, "").strip() for variable in VARIABLES}
    return {name: text for name, text in stripped.items() if text}


def _explain(
    error: ValidationError, variables: Mapping[str, Variable], texts: Mapping[str, str]
) -> Iterator[str]:
    for details in error.errors(include_input=False, include_url=False):
        variable = variables.get(str(details["loc"][0]))
        # A default that was derived from a wrong value is no mistake of its own.
        if variable is not None:
            reason = details["msg"] if details["type"] == CONFLICT else f"must be {variable.allowed}"
            yield f"{variable.name}={variable.printable_text(texts[variable.name])}: {reason}"


def _explain_missing(texts: Mapping[str, str]) -> Iterator[str]:
    reasons = {needed: name for name in texts for needed in NEEDS.get(name, ()) if needed not in texts}
    for needed, name in reasons.items():
        yield f"{needed} is not set: it must be set when {name} is"
