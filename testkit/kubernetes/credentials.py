"""Certificates and tokens of a test cluster, and the kubeconfigs that contain them."""

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALIDITY = timedelta(days=30)
ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
PROXY = "system:kube-proxy"
# The groups of each user, besides the nodes.
GROUPS = {ADMIN: "system:masters", CONTROLLER_MANAGER: "", SCHEDULER: "", PROXY: ""}


def node_user(name: str) -> str:
    return f"system:node:{name}"


@dataclass(frozen=True)
class Credentials:
    """The files of one cluster."""

    directory: Path

    def certificate(self, name: str) -> Path:
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    @property
    def authority(self) -> Path:
        return self.certificate("authority")

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    def kubeconfig(self, user: str) -> Path:
        return self.directory / f"{user.replace(':', '-')}.kubeconfig"


def create(credentials: Credentials, url: str, addresses: Sequence[str], nodes: Sequence[str]) -> None:
    """Write the credentials of a new cluster whose API server has these addresses."""
    credentials.directory.mkdir(mode=0o700, parents=True)
    issuer, key = _name("authority"), ec.generate_private_key(ec.SECP256R1())
    authority = _builder(issuer, issuer, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    credentials.authority.write_bytes(authority.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    # The second one is what the API server shows to the kubelets; its addresses do no harm.
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
    for name, group in (("api-server", None), ("kubelet-client", "system:masters")):
        own_key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, group), issuer, own_key).add_extension(names, critical=False)
        credentials.certificate(name).write_bytes(
            builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
        )
        _write_key(credentials.key(name), own_key)
    _write_key(credentials.key("service-accounts"), ec.generate_private_key(ec.SECP256R1()))
    _write_tokens(credentials, url, {**GROUPS, **{node_user(node): "system:nodes" for node in nodes}})


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
        # The clock may be set back.
        .not_valid_before(now - VALIDITY)
        .not_valid_after(now + VALIDITY)
    )


def _name(common_name: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # The API server reads the public part of keys in no other format.
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def _write_tokens(credentials: Credentials, url: str, groups: dict[str, str]) -> None:
    tokens = {user: secrets.token_hex(16) for user in groups}
    rows = [f'{tokens[user]},{user},{user},"{groups[user]}"\n' for user in groups]
    credentials.tokens.write_text("".join(rows))
    authority = base64.b64encode(credentials.authority.read_bytes()).decode()
    cluster = {"server": url, "certificate-authority-data": authority}
    for user, token in tokens.items():
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        credentials.kubeconfig(user).write_text(json.dumps(configuration))
