"""Network policies: which hosts and addresses a workspace may connect to."""

from ipaddress import IPv4Network, IPv6Network, ip_address

import pytest

from codehub.domain.egress import (
    MOST_NAMES,
    EgressMode,
    EgressPolicy,
    EgressRules,
    InvalidName,
    OwnServers,
    Refusal,
    Verdict,
    is_public,
    judge_addresses,
    judge_name,
    parse_host,
    parse_pattern,
    parse_policy,
    rules_for,
    verdict_of,
)

NOBODY = OwnServers()
OPEN = EgressPolicy()
CLOSED = EgressPolicy(EgressMode.NONE)


def allow_list(*names: str) -> EgressPolicy:
    return parse_policy(EgressMode.ALLOW_LIST, names)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("github.com", "github.com"),
        ("GitHub.COM", "github.com"),
        ("github.com.", "github.com"),
        ("localhost", "localhost"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("_dmarc.example.org", "_dmarc.example.org"),
        ("4chan.example", "4chan.example"),
        ("1.example.0x", None),
        ("93.184.216.34", "93.184.216.34"),
        ("2606:4700::1111", "2606:4700::1111"),
        ("[2606:4700::1111]", "2606:4700::1111"),
        ("2606:4700:0:0:0:0:0:1111", "2606:4700::1111"),
        ("[93.184.216.34]", None),
        ("fe80::1%eth0", None),
        ("a" * 63 + ".org", "a" * 63 + ".org"),
        ("a" * 64 + ".org", None),
        (".".join(["a" * 63] * 4), None),
    ],
)
def test_a_host_has_one_canonical_spelling(text: str, host: str | None) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "github.com..",
        ".github.com",
        "github..com",
        "-github.com",
        "github-.com",
        "git hub.com",
        "github.com\0.example",
        "github.com\r\n",
        "user@github.com",
        "github.com:443",
        "github.com/path",
        "bücher.example",
        "github。com",
        # Fullwidth and circled digits, which IDNA would turn into 127.0.0.1.
        "\uff11\uff12\uff17.0.0.1",
        "\u2460\u2461\u2466.0.0.1",
        # Everything that inet_aton accepts besides four decimal numbers.
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "017700000001",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f.1",
        "127.0.0.0x1",
        "127.0.0.01",
        "127.0.0.1.",
        "00000127.0.0.1",
        "0",
        "0x",
        "256.0.0.1",
        "1.2.3.4.5",
        "[::1",
        "::1]",
        "[]",
        "::ffff:127.0.0.1%1",
    ],
)
def test_another_spelling_of_a_host_is_no_host(text: str) -> None:
    assert parse_host(text) is None


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::127.0.0.1",
        "::93.184.216.34",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:93.184.216.34",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::a00:1",
        "64:ff9b:1::7f00:1",
        "100::1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:10::1",
        "2001:20::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "fe80::a9fe:a9fe",
        "fec0::1",
        "ff02::1",
        "4000::1",
    ],
)
def test_private_and_special_addresses_are_refused_whatever_the_policy(address: str) -> None:
    assert judge_addresses(NOBODY, [ip_address(address)], 443) is Refusal.PRIVATE_ADDRESS


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:4860:4860::8888",
        "2003::1",
        "64:ff9b::5db8:d822",
    ],
)
def test_addresses_next_to_the_refused_ranges_are_public(address: str) -> None:
    assert judge_addresses(NOBODY, [ip_address(address)], 443) is None


def test_one_private_address_among_public_ones_refuses_all() -> None:
    mixed = [ip_address("1.1.1.1"), ip_address("127.0.0.1")]
    assert judge_addresses(NOBODY, mixed, 443) is Refusal.PRIVATE_ADDRESS


OWN = OwnServers(
    addresses=frozenset({ip_address("203.0.113.7")}),
    endpoints=frozenset({(ip_address("203.0.113.8"), 5432), (ip_address("203.0.113.9"), 443)}),
    names=frozenset({("db.example.org", 5432)}),
    networks=(IPv4Network("203.0.114.0/24"), IPv6Network("2001:db9::/32")),
)


@pytest.mark.parametrize(
    ("address", "port", "refused"),
    [
        ("203.0.113.7", 22, True),
        ("203.0.113.8", 5432, True),
        ("203.0.113.8", 443, False),
        ("203.0.114.200", 443, True),
        ("2001:db9::1", 443, True),
        ("64:ff9b::203.0.113.7", 80, True),
        ("64:ff9b::203.0.113.9", 443, True),
        ("64:ff9b::203.0.114.1", 443, True),
        ("203.0.113.10", 443, False),
    ],
)
def test_servers_of_codehub_are_refused_by_address(address: str, port: int, refused: bool) -> None:
    expected = Refusal.OWN_SERVER if refused else None
    assert judge_addresses(OWN, [ip_address(address)], port) is expected


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ("0b8f3c1e.workspaces.example", True),
        ("3000--0b8f3c1e.workspaces.example", True),
        ("workspaces.example", False),
        ("otherworkspaces.example", False),
        ("workspaces.example.org", False),
    ],
)
def test_the_origins_of_workspaces_are_refused_on_every_port(host: str, refused: bool) -> None:
    own = OwnServers(domain="workspaces.example")
    for port in (80, 443, 8080):
        assert judge_name(EgressRules((OPEN,)), own, host, port) is (Refusal.OWN_SERVER if refused else None)


@pytest.mark.parametrize(("port", "expected"), [(5432, Refusal.OWN_SERVER), (443, None)])
def test_servers_of_codehub_are_refused_by_name_before_it_is_resolved(
    port: int, expected: Refusal | None
) -> None:
    assert judge_name(EgressRules((OPEN,)), OWN, "db.example.org", port) is expected


@pytest.mark.parametrize(
    ("policy", "host", "allowed"),
    [
        (OPEN, "github.com", True),
        (OPEN, "1.1.1.1", True),
        (CLOSED, "github.com", False),
        (allow_list(), "github.com", False),
        (allow_list("github.com"), "github.com", True),
        (allow_list("GitHub.com."), "github.com", True),
        (allow_list("github.com"), "files.github.com", False),
        (allow_list("github.com"), "evilgithub.com", False),
        (allow_list("*.github.com"), "files.github.com", True),
        (allow_list("*.github.com"), "a.b.github.com", True),
        (allow_list("*.github.com"), "github.com", False),
        (allow_list("*.github.com"), "evilgithub.com", False),
        (allow_list("*.github.com"), "github.com.evil.example", False),
        (allow_list("*.com"), "github.com", True),
        (allow_list("1.1.1.1"), "1.1.1.1", True),
        (allow_list("1.1.1.1"), "1.1.1.2", False),
        (allow_list("[2606:4700:0::1111]"), "2606:4700::1111", True),
    ],
)
def test_a_policy_lets_names_through(policy: EgressPolicy, host: str, allowed: bool) -> None:
    assert policy.allows(host) is allowed
    assert judge_name(EgressRules((policy,)), NOBODY, host, 443) is (None if allowed else Refusal.POLICY)


def test_the_mode_and_the_wildcard_are_no_way_around_numbers() -> None:
    assert not EgressPolicy(EgressMode.ALLOW_LIST, frozenset({"*.0.0.1"})).allows("127.0.0.1")


@pytest.mark.parametrize(
    "entry", ["", "*", "*.", "*.1.1.1.1", "a.*.org", "http://github.com", "git hub", "127.1"]
)
def test_an_entry_that_is_no_name_is_explained(entry: str) -> None:
    with pytest.raises(InvalidName, match=r"is not a name; write github\.com"):
        parse_pattern(entry)


def test_only_an_allow_list_has_names() -> None:
    with pytest.raises(InvalidName, match="Only the mode allow-list"):
        parse_policy(EgressMode.NONE, ["github.com"])


def test_an_allow_list_is_not_endless() -> None:
    many = [f"{number}.example.org" for number in range(MOST_NAMES + 1)]
    assert len(allow_list(*many[1:]).names) == MOST_NAMES
    with pytest.raises(InvalidName, match=f"at most {MOST_NAMES}"):
        allow_list(*many)


GITHUB, GITLAB = allow_list("github.com"), allow_list("gitlab.com")


@pytest.mark.parametrize(
    ("installation", "limit", "choice", "loosen", "policies"),
    [
        (OPEN, None, None, False, (OPEN,)),
        (GITHUB, None, None, False, (GITHUB,)),
        (OPEN, None, CLOSED, False, (OPEN, CLOSED)),
        # A choice never loosens by itself,
        (GITHUB, None, OPEN, False, (GITHUB, OPEN)),
        # unless owners may,
        (GITHUB, None, OPEN, True, (OPEN,)),
        (GITHUB, None, None, True, (GITHUB,)),
        # and an administrator set no limit for this workspace.
        (OPEN, GITHUB, OPEN, True, (GITHUB, OPEN)),
        (GITHUB, OPEN, None, False, (OPEN,)),
        (GITHUB, OPEN, GITLAB, False, (OPEN, GITLAB)),
    ],
)
def test_who_decides(
    installation: EgressPolicy,
    limit: EgressPolicy | None,
    choice: EgressPolicy | None,
    loosen: bool,
    policies: tuple[EgressPolicy, ...],
) -> None:
    assert rules_for(installation, limit, choice, owners_may_loosen=loosen) == EgressRules(policies)


def test_a_connection_needs_the_permission_of_each_policy() -> None:
    rules = EgressRules((allow_list("github.com", "gitlab.com"), GITHUB))
    assert rules.allow("github.com")
    assert not rules.allow("gitlab.com")


def test_every_refusal_reads_as_refused_in_the_log() -> None:
    assert verdict_of(None) is Verdict.ALLOWED
    assert {verdict_of(refusal) for refusal in Refusal} == {Verdict.REFUSED}


def test_no_address_of_a_refused_range_is_public() -> None:
    """The tables above name examples; this walks over the edges of each range of RFC 1918 and its like."""
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "100.64.0.0/10",
    ):
        network = IPv4Network(text)
        edges = (network[0], network[1], network[-2], network[-1])
        assert not any(map(is_public, edges))
