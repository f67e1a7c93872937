"""Which CodeHub this is."""

from importlib.metadata import version

VERSION = version("codehub")
