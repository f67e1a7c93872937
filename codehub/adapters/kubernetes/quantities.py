"""Quantities as Kubernetes writes them, such as 10Gi or 1500m."""

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([KMGTPE]i|[mkMGTPE])?")
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)}
_FACTORS = {"": Decimal(1), "m": Decimal("0.001"), **_BINARY, **_DECIMAL}


def parse_bytes(quantity: str) -> int:
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    return int(Decimal(match[1]) * _FACTORS[match[2] or ""])


def format_cpus(cpus: float) -> str:
    """Return the quantity in thousandths of a CPU; the API keeps nothing finer."""
    return f"{max(1, round(cpus * 1000))}m"
