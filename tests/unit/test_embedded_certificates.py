"""Certificates of the embedded servers: issued once, private, renewed long before they expire."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from codehub.embedded import certificates as module
from codehub.embedded.certificates import RENEWAL, Certificates, ensure_certificates


@pytest.fixture
def issued(tmp_path: Path) -> Certificates:
    files = Certificates(tmp_path / "tls")
    ensure_certificates(files, "temporal")
    return files


def contents(files: Certificates) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.directory.iterdir()}


def test_current_certificates_are_kept(issued: Certificates) -> None:
    before = contents(issued)
    ensure_certificates(issued, "temporal")
    assert contents(issued) == before


@pytest.mark.parametrize("name", ["ca.pem", "server.key", "client.pem"])
def test_incomplete_certificates_are_replaced(issued: Certificates, name: str) -> None:
    before = contents(issued)
    (issued.directory / name).unlink()
    ensure_certificates(issued, "temporal")
    assert contents(issued).keys() == before.keys()
    assert not set(contents(issued).values()) & set(before.values())


def test_certificates_are_renewed_long_before_they_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Certificates(tmp_path / "tls")
    with monkeypatch.context() as patched:
        patched.setattr(module, "VALIDITY", RENEWAL)
        ensure_certificates(files, "temporal")
    ensure_certificates(files, "temporal")
    expiry = x509.load_pem_x509_certificate(files.authority.read_bytes()).not_valid_after_utc
    assert expiry - datetime.now(UTC) > RENEWAL


def test_only_the_owner_can_read_them(issued: Certificates) -> None:
    assert issued.directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in issued.directory.iterdir()} == {0o600}


def test_each_key_belongs_to_its_certificate_and_the_authority_has_none(issued: Certificates) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for pair in (issued.server, issued.client):
        context.load_cert_chain(*pair)
    assert sorted(path.name for path in issued.directory.glob("*.key")) == ["client.key", "server.key"]
