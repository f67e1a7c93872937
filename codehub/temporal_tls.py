"""Reads and checks the TLS files that the settings name for Temporal."""

import ssl
from pathlib import Path

from temporalio.service import TLSConfig

from codehub.settings import SettingsError, Temporal

PREFIX = "CODEHUB_TEMPORAL_TLS_"


def load_tls_config(temporal: Temporal) -> TLSConfig | None:
    """Return None without TLS. Raise SettingsError for a file that is unreadable or invalid."""
    if not temporal.uses_tls:
        return None
    named = {
        "CA_FILE": temporal.tls_ca_file,
        "CERT_FILE": temporal.tls_cert_file,
        "KEY_FILE": temporal.tls_key_file,
    }
    contents = {name: _read(name, path) for name, path in named.items() if path is not None}
    _check(temporal)
    return TLSConfig(
        server_root_ca_cert=contents.get("CA_FILE"),
        domain=temporal.tls_server_name,
        client_cert=contents.get("CERT_FILE"),
        client_private_key=contents.get("KEY_FILE"),
    )


def _read(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _wrong(name, path, f"cannot be read ({error.strerror})") from error


def _check(temporal: Temporal) -> None:
    """Check the files, because the client would only report that the connection failed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if temporal.tls_ca_file:
        try:
            context.load_verify_locations(temporal.tls_ca_file)
        except ssl.SSLError as error:
            raise _wrong("CA_FILE", temporal.tls_ca_file, "must hold certificates in PEM format") from error
    if temporal.tls_cert_file and temporal.tls_key_file:
        try:
            # Without a password function, an encrypted key would prompt on the terminal.
            context.load_cert_chain(temporal.tls_cert_file, temporal.tls_key_file, password=lambda: "")
        except ssl.SSLError as error:
            reason = f"must be the private key of {PREFIX}CERT_FILE, both in PEM format and not encrypted"
            raise _wrong("KEY_FILE", temporal.tls_key_file, reason) from error


def _wrong(name: str, path: Path, reason: str) -> SettingsError:
    return SettingsError([f"{PREFIX}{name}={path}: {reason}"])
