"""Temporal over TLS, with certificates on both sides: a real server behind a TLS endpoint."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codehub.adapters.temporal.connection import TemporalUnavailable, temporal_version
from codehub.bootstrap import connect_temporal
from codehub.settings import SettingsError, load_settings
from testkit.temporal_server import TemporalServer
from testkit.tls_endpoint import Authority, Identity, tls_endpoint

HOST = "temporal.test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def untrusted_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority, which is not trusted."""
    return Authority.make(tmp_path_factory.mktemp("untrusted_authority"))


@pytest.fixture(scope="module")
def client_identity(authority: Authority) -> Identity:
    return authority.issue("codehub")


@pytest.fixture
async def address(authority: Authority, temporal_server: TemporalServer) -> AsyncIterator[str]:
    """The settings for an endpoint that requires a client certificate."""
    async with tls_endpoint(authority.issue(HOST), temporal_server.port, authority) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
def variables(address: str, authority: Authority, client_identity: Identity) -> dict[str, str]:
    return {
        "CODEHUB_TEMPORAL_ADDRESS": address,
        "CODEHUB_TEMPORAL_TLS_CA_FILE": str(authority.own.certificate),
        "CODEHUB_TEMPORAL_TLS_CERT_FILE": str(client_identity.certificate),
        "CODEHUB_TEMPORAL_TLS_KEY_FILE": str(client_identity.key),
        "CODEHUB_TEMPORAL_TLS_SERVER_NAME": HOST,
    }


def without(variables: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in names}


async def version_through(variables: dict[str, str]) -> str:
    return await temporal_version(await connect_temporal(load_settings(variables)))


async def test_a_client_with_its_certificate_is_accepted(variables: dict[str, str]) -> None:
    assert await version_through(variables)


async def test_a_lazy_client_uses_tls_too(variables: dict[str, str]) -> None:
    client = await connect_temporal(load_settings(variables), lazy=True)
    assert await temporal_version(client)


async def test_a_client_without_a_certificate_is_refused(variables: dict[str, str]) -> None:
    certificate = ("CODEHUB_TEMPORAL_TLS_CERT_FILE", "CODEHUB_TEMPORAL_TLS_KEY_FILE")
    with pytest.raises(TemporalUnavailable, match="with TLS"):
        await version_through(without(variables, *certificate))


async def test_a_client_of_another_authority_is_refused(
    variables: dict[str, str], untrusted_authority: Authority
) -> None:
    other = untrusted_authority.issue("codehub")
    files = {
        "CODEHUB_TEMPORAL_TLS_CERT_FILE": str(other.certificate),
        "CODEHUB_TEMPORAL_TLS_KEY_FILE": str(other.key),
    }
    with pytest.raises(TemporalUnavailable):
        await version_through({**variables, **files})


async def test_a_server_of_another_authority_is_not_trusted(
    variables: dict[str, str], untrusted_authority: Authority
) -> None:
    trusted = {"CODEHUB_TEMPORAL_TLS_CA_FILE": str(untrusted_authority.own.certificate)}
    with pytest.raises(TemporalUnavailable):
        await version_through({**variables, **trusted})


async def test_a_server_of_another_name_is_not_trusted(variables: dict[str, str]) -> None:
    with pytest.raises(TemporalUnavailable):
        await version_through({**variables, "CODEHUB_TEMPORAL_TLS_SERVER_NAME": "other.test"})


async def test_a_server_with_tls_refuses_plain_connections(address: str) -> None:
    with pytest.raises(TemporalUnavailable, match="without TLS"):
        await version_through({"CODEHUB_TEMPORAL_ADDRESS": address})


async def test_a_server_that_requires_no_client_certificate_needs_only_its_authority(
    authority: Authority, temporal_server: TemporalServer, variables: dict[str, str]
) -> None:
    async with tls_endpoint(authority.issue(HOST), temporal_server.port) as port:
        certificate = ("CODEHUB_TEMPORAL_TLS_CERT_FILE", "CODEHUB_TEMPORAL_TLS_KEY_FILE")
        plain = without(variables, *certificate)
        assert await version_through({**plain, "CODEHUB_TEMPORAL_ADDRESS": f"127.0.0.1:{port}"})


async def test_an_api_key_is_sent_over_tls(variables: dict[str, str]) -> None:
    assert await version_through({**variables, "CODEHUB_TEMPORAL_API_KEY": "key"})


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("CA_FILE", None, "cannot be read (No such file or directory)"),
        ("CERT_FILE", None, "cannot be read (No such file or directory)"),
        ("KEY_FILE", None, "cannot be read (No such file or directory)"),
        ("CA_FILE", "nothing", "must hold certificates in PEM format"),
        ("KEY_FILE", "nothing", "must be the private key of CODEHUB_TEMPORAL_TLS_CERT_FILE"),
    ],
)
async def test_an_invalid_file_is_explained(
    variables: dict[str, str], tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    variable, path = f"CODEHUB_TEMPORAL_TLS_{name}", tmp_path / "file.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError) as raised:
        await connect_temporal(load_settings({**variables, variable: str(path)}), lazy=True)
    [problem] = raised.value.problems
    assert problem.startswith(f"{variable}={path}: {words}")


async def test_the_key_of_another_certificate_is_explained(
    variables: dict[str, str], authority: Authority
) -> None:
    other = authority.issue("somebody-else")
    with pytest.raises(SettingsError, match="must be the private key of CODEHUB_TEMPORAL_TLS_CERT_FILE"):
        await connect_temporal(
            load_settings({**variables, "CODEHUB_TEMPORAL_TLS_KEY_FILE": str(other.key)}), lazy=True
        )


def test_a_worker_that_cannot_reach_temporal_exits_with_an_explanation() -> None:
    run = subprocess.run(
        (sys.executable, "-m", "worker"),
        env={"CODEHUB_TEMPORAL_ADDRESS": "127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("Temporal cannot be reached at 127.0.0.1:9 without TLS")
    assert "Traceback" not in run.stderr
