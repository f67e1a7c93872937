"""The settings of all processes; only this package reads the environment."""

from codehub.settings.concern import Concern
from codehub.settings.loading import (
    CONCERNS,
    VARIABLES,
    SettingsError,
    Variable,
    load_settings,
    unknown_variables,
)
from codehub.settings.servers import S3, Temporal
from codehub.settings.settings import Settings
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
