"""The certificates for mutual TLS between an embedded server and its clients."""

import ipaddress
import shutil
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from codehub.embedded.data_dir import make_private_directory, write_private
from codehub.embedded.free_ports import LOOPBACK

VALIDITY = timedelta(days=3650)
# Certificates are renewed only when the stack starts, so it may run for this long without a restart.
RENEWAL = VALIDITY / 2
# Tolerate a clock that is set back.
BACKDATED = timedelta(days=1)
# The components of a server are also clients of each other.
USAGES = {
    "server": (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
    "client": (ExtendedKeyUsageOID.CLIENT_AUTH,),
}


@dataclass(frozen=True)
class Certificates:
    """The files of one server: its CA certificate, and certificates with keys for server and client."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    @property
    def server(self) -> tuple[Path, Path]:
        return self.directory / "server.pem", self.directory / "server.key"

    @property
    def client(self) -> tuple[Path, Path]:
        return self.directory / "client.pem", self.directory / "client.key"

    @property
    def is_current(self) -> bool:
        """Return whether all files exist and need no renewal yet."""
        if not all(path.exists() for path in (self.authority, *self.server, *self.client)):
            return False
        try:
            authority = x509.load_pem_x509_certificate(self.authority.read_bytes())
        except ValueError:
            return False
        return authority.not_valid_after_utc - datetime.now(UTC) > RENEWAL


def ensure_certificates(certificates: Certificates, name: str) -> None:
    """Issue certificates for this server on loopback, unless current ones exist."""
    if certificates.is_current:
        return
    # In a temporary directory until it is complete. The CA key is not stored, so nobody can issue more.
    new = certificates.directory.with_name(f"{certificates.directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    make_private_directory(new)
    _issue(Certificates(new), name)
    shutil.rmtree(certificates.directory, ignore_errors=True)
    new.rename(certificates.directory)


def client_context(certificates: Certificates) -> ssl.SSLContext:
    """Return the TLS configuration of a client with this certificate, for HTTP/1.1."""
    context = ssl.create_default_context(cafile=certificates.authority)
    context.load_cert_chain(*certificates.client)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _issue(certificates: Certificates, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"CodeHub {name} authority")
    authority = (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(certificates.authority, _pem(authority))
    for role, (certificate_file, key_file) in (
        ("server", certificates.server),
        ("client", certificates.client),
    ):
        own_key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
        certificate = (
            _builder(_subject(f"{name} {role}"), subject, own_key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(USAGES[role]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(certificate_file, _pem(certificate))
        write_private(
            key_file,
            own_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALIDITY)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
