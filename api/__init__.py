"""The REST API and the dashboard."""

from importlib.metadata import version

VERSION = version("codehub")
