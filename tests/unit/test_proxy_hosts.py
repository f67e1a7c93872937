"""Which host is a workspace's, which is the main origin's, and which is neither."""

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.origins import OriginMode, Origins
from proxy.hosts import Hosts, Misdirected, UnknownNumber
from proxy.request_kind import WorkspacePort

ID = "0b8f3c1e-9d2a-4c55-8f3e-2b1a7c9d0e4f"
LOCAL = Hosts(Origins("http://localhost:8080"))
PUBLIC = Hosts(Origins("https://hub.example", domain="workspaces.example"))


@pytest.mark.parametrize(
    ("hosts", "host", "expected"),
    [
        (LOCAL, f"{ID}.localhost:8080", ID),
        (LOCAL, "localhost:8080", None),
        (LOCAL, "127.0.0.1:8080", None),
        (LOCAL, "[::1]:8080", None),
        (LOCAL, "codehub.internal", None),
        (PUBLIC, f"{ID}.workspaces.example", ID),
        (PUBLIC, "hub.example", None),
        (PUBLIC, f"{ID}.workspaces.example.evil.example", None),
        (PUBLIC, "10.0.0.5:8080", None),
        (Hosts(Origins("http://localhost:8080", OriginMode.PATH)), f"{ID}.localhost:8080", None),
    ],
)
def test_a_host_names_a_workspace_or_the_main_origin(hosts: Hosts, host: str, expected: str | None) -> None:
    assert hosts.find(host.encode()) == expected


def test_a_host_can_name_a_port_of_a_workspace() -> None:
    label = f"3000--{ID}"
    assert LOCAL.find(f"{label}.localhost:8080".encode()) == WorkspacePort(WorkspaceId(ID), 3000, label)
    assert PUBLIC.find(f"65535--{ID}.workspaces.example".encode()) is not None


@pytest.mark.parametrize(
    "label",
    [
        f"03000--{ID}",
        f"+3000--{ID}",
        f"3000---{ID}",
        f"3000-{ID}",
        f"--{ID}",
        f"0--{ID}",
        f"-1--{ID}",
        f"65536--{ID}",
        f"99999999999999999999--{ID}",
        f"3_000--{ID}",
        f"0xbb8--{ID}",
        f"\xb3--{ID}",
        f"3000--{ID.upper()}",
        f"3000--{ID}--3000",
        f"3000--3000--{ID}",
        f"http--{ID}",
        "3000--",
        "3000--x",
    ],
)
def test_other_spellings_of_a_port_name_nothing(label: str) -> None:
    with pytest.raises(Misdirected):
        LOCAL.find(f"{label}.localhost:8080".encode("latin-1"))


def test_without_a_host_a_request_is_for_the_main_origin() -> None:
    assert LOCAL.find(None) is None


@pytest.mark.parametrize(
    ("hosts", "host"),
    [
        (LOCAL, f"{ID}.localhost"),
        (LOCAL, f"{ID}.localhost:8081"),
        (LOCAL, f"{ID}.LOCALHOST:8080"),
        (LOCAL, f"{ID.upper()}.localhost:8080"),
        (LOCAL, f"{ID}.localhost.:8080"),
        (LOCAL, f"x.{ID}.localhost:8080"),
        (LOCAL, "evil.localhost:8080"),
        (PUBLIC, f"{ID}.workspaces.example:8443"),
        (PUBLIC, "x.workspaces.example"),
    ],
)
def test_no_control_plane_is_served_in_the_domain_of_workspaces(hosts: Hosts, host: str) -> None:
    with pytest.raises(Misdirected):
        hosts.find(host.encode())


def with_ports() -> Hosts:
    return Hosts(Origins("http://hub.example:8080", OriginMode.PORT, ports=range(9000, 9010)))


def test_a_port_is_a_workspaces_once_it_was_looked_up() -> None:
    hosts = with_ports()
    with pytest.raises(UnknownNumber) as unknown:
        hosts.find(b"hub.example:9001")
    hosts.learn(unknown.value.number, WorkspaceId(ID))
    assert (unknown.value.number, hosts.find(b"hub.example:9001")) == (2, ID)


@pytest.mark.parametrize(
    "host", [b"hub.example:8080", b"hub.example", b"hub.example:9010", b"10.0.0.5", None]
)
def test_other_ports_are_the_main_origin(host: bytes | None) -> None:
    assert with_ports().find(host) is None


@pytest.mark.parametrize(
    "host", [b"HUB.example:9001", b"127.0.0.1:9001", b"hub.example.:9001", b"hub.example:09001"]
)
def test_other_names_on_a_workspaces_port_serve_nothing(host: bytes) -> None:
    with pytest.raises(Misdirected):
        with_ports().find(host)


@pytest.mark.parametrize(
    ("hosts", "host", "expected"),
    [
        (LOCAL, b"127.0.0.1:8080", True),
        (LOCAL, b"[::1]:8080", True),
        (LOCAL, b"localhost:9000", True),
        (LOCAL, b"localhost:8080", False),
        (LOCAL, b"codehub.internal", False),
        (LOCAL, None, False),
        (PUBLIC, b"127.0.0.1:8080", False),
    ],
)
def test_other_names_of_loopback_are_known(hosts: Hosts, host: bytes | None, expected: bool) -> None:
    assert hosts.is_other_loopback(host) is expected


@pytest.mark.parametrize(
    ("public_url", "expected"),
    [
        ("https://hub.example", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://hub.example:8080", False),
    ],
)
def test_browsers_name_the_site_only_on_https_and_to_loopback(public_url: str, expected: bool) -> None:
    assert Origins(public_url, domain="workspaces.example").names_site is expected
