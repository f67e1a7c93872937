"""The settings of all processes; only this package reads the environment."""

from codehub.settings.concerns import S3, Concern, Settings, Temporal
from codehub.settings.loading import (
    CONCERNS,
    VARIABLES,
    SettingsError,
    Variable,
    load_settings,
    unknown_variables,
)
from codehub.settings.types import MASK, SecretUrl, mask_url

__all__ = [
    "CONCERNS",
    "MASK",
    "S3",
    "VARIABLES",
    "Concern",
    "SecretUrl",
    "Settings",
    "SettingsError",
    "Temporal",
    "Variable",
    "load_settings",
    "mask_url",
    "unknown_variables",
]
