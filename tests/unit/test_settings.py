"""Settings come from the environment, errors are in plain words, and secrets never leak."""

import traceback
from collections import Counter
from datetime import timedelta

import pytest
from pydantic import ValidationError

from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Sharing, SharingRules
from codehub.providers import docker_options_of
from codehub.settings import (
    VARIABLES,
    Settings,
    SettingsError,
    Variable,
    load_settings,
    mask_url,
    unknown_variables,
)

MUST_NOT_APPEAR = "hunter2"
EXTERNAL_S3 = {
    "CODEHUB_S3_ENDPOINT_URL": "https://s3.example",
    "CODEHUB_S3_ACCESS_KEY": "codehub",
    "CODEHUB_S3_SECRET_KEY": MUST_NOT_APPEAR,
}
GATEWAY = {"CODEHUB_EGRESS_KEY": "key"}
DIRECT = {"CODEHUB_DOCKER_EGRESS": "direct"}


def problems(environment: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load_settings(environment)
    return list(raised.value.problems)


def test_without_variables_everything_runs_on_this_machine() -> None:
    settings = load_settings({})
    assert settings == Settings()
    external = [
        settings.database.url,
        settings.redis.url,
        settings.s3.endpoint_url,
        settings.temporal.address,
    ]
    assert external == [None] * 4
    assert settings.public_base_url == "http://localhost:8080"


def test_defaults_match_the_contract() -> None:
    settings = load_settings({})
    assert (settings.ttl.standby_seconds, settings.ttl.archive_seconds) == (600, 1800)
    assert (settings.limits.max_running_per_user, settings.limits.max_running_global) == (2, 100)
    assert (settings.gc.grace_seconds, settings.gc.undelete_seconds) == (7200, 604800)


def test_ttls_have_the_variable_names_of_the_contract() -> None:
    settings = load_settings({"TTL_STANDBY_SECONDS": "10800", "TTL_ARCHIVE_SECONDS": "86400"})
    assert (settings.ttl.standby_seconds, settings.ttl.archive_seconds) == (10800, 86400)


def test_only_the_given_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEHUB_LOG_LEVEL", "debug")
    monkeypatch.setenv("LOG_LEVEL", "debug")
    assert load_settings({}).general.log_level == Settings().general.log_level == "info"
    assert load_settings().general.log_level == "debug"


def test_no_two_settings_share_a_variable() -> None:
    assert Counter(variable.name for variable in VARIABLES).most_common(1)[0][1] == 1


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_setting_is_described_in_one_line(variable: Variable) -> None:
    assert variable.description.endswith(".")
    assert "\n" not in variable.description


def test_settings_cannot_be_changed() -> None:
    settings = load_settings({})
    with pytest.raises(ValidationError, match="frozen"):
        settings.ttl.standby_seconds = 1  # type: ignore[misc]


def test_an_empty_variable_counts_as_unset() -> None:
    settings = load_settings({"CODEHUB_DATABASE_URL": "", "CODEHUB_LOG_LEVEL": " "})
    assert settings == Settings()
    assert not any(variable.is_set(settings) for variable in VARIABLES)


def test_the_newline_of_a_secret_file_is_not_part_of_the_secret() -> None:
    secret_key = load_settings(EXTERNAL_S3 | {"CODEHUB_S3_SECRET_KEY": f"{MUST_NOT_APPEAR}\n"}).s3.secret_key
    assert secret_key is not None
    assert secret_key.get_secret_value() == MUST_NOT_APPEAR


def test_log_levels_may_be_written_in_capitals() -> None:
    assert load_settings({"CODEHUB_LOG_LEVEL": "WARNING"}).general.log_level == "warning"


def test_the_public_url_is_the_address_of_the_proxy_by_default() -> None:
    assert load_settings({"CODEHUB_PROXY_PORT": "9000"}).public_base_url == "http://localhost:9000"
    for host in ("127.0.0.1", "::1", "0.0.0.0", "::"):  # noqa: S104
        assert load_settings({"CODEHUB_PROXY_HOST": host}).public_base_url == "http://localhost:8080"
    own = {"CODEHUB_PROXY_HOST": "2001:db8::1", "CODEHUB_WORKSPACES_DOMAIN": "workspaces.example"}
    assert load_settings(own).public_base_url == "http://[2001:db8::1]:8080"


def test_a_trailing_slash_of_the_base_url_is_removed() -> None:
    settings = load_settings({"CODEHUB_PUBLIC_BASE_URL": "http://localhost:8080/codehub/"})
    assert settings.public_base_url == "http://localhost:8080/codehub"


ID = WorkspaceId("0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44")
PUBLIC = {"CODEHUB_PUBLIC_BASE_URL": "https://hub.example:8443/codehub"}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, f"http://{ID}.localhost:8080/"),
        ({"CODEHUB_PUBLIC_BASE_URL": "http://127.0.0.1:9000"}, f"http://{ID}.localhost:9000/"),
        (PUBLIC | {"CODEHUB_WORKSPACES_DOMAIN": "Hub-Ws.Example"}, f"https://{ID}.hub-ws.example:8443/"),
        (PUBLIC | {"CODEHUB_WORKSPACES_ORIGINS": "path"}, f"https://hub.example:8443/codehub/w/{ID}/"),
    ],
)
def test_every_workspace_has_an_origin(environment: dict[str, str], url: str) -> None:
    assert load_settings(environment).origins.url_of(ID) == url


@pytest.mark.parametrize(
    "domain",
    ["hub.example", "ws.hub.example", "example", "HUB.example"],
    ids=["same", "below", "above", "case"],
)
def test_the_domain_of_workspaces_must_be_apart_from_the_main_host(domain: str) -> None:
    (problem,) = problems(PUBLIC | {"CODEHUB_WORKSPACES_DOMAIN": domain})
    assert problem.startswith(
        f"CODEHUB_WORKSPACES_DOMAIN={domain.lower()}: must be neither hub.example, nor above or below it"
    )


@pytest.mark.parametrize("url", ["https://hub.example", "http://10.0.0.5:8080", "http://localhost.example"])
def test_a_public_url_that_others_can_reach_needs_a_domain_for_workspaces(url: str) -> None:
    (problem,) = problems({"CODEHUB_PUBLIC_BASE_URL": url})
    assert problem.startswith(f"CODEHUB_WORKSPACES_DOMAIN is not set: workspaces of {url} need a domain")


@pytest.mark.parametrize("domain", ["10.0.0.5", "ws.example:8080", "https://ws.example", "*.ws.example", "."])
def test_only_a_domain_is_a_domain(domain: str) -> None:
    (problem,) = problems(PUBLIC | {"CODEHUB_WORKSPACES_DOMAIN": domain})
    assert "must be a domain without a port" in problem


@pytest.mark.parametrize("mode", ["path", "port"])
def test_other_modes_have_no_domain(mode: str) -> None:
    (problem,) = problems({"CODEHUB_WORKSPACES_ORIGINS": mode, "CODEHUB_WORKSPACES_DOMAIN": "ws.example"})
    assert f"must be unset when CODEHUB_WORKSPACES_ORIGINS is {mode}" in problem


PORTS = {"CODEHUB_WORKSPACES_ORIGINS": "port", "CODEHUB_PUBLIC_BASE_URL": "http://hub.example:7000"}


def test_a_workspace_has_the_port_of_its_number() -> None:
    origins = load_settings(PORTS | {"CODEHUB_WORKSPACES_PORTS": "9000-9001"}).origins
    assert origins.url_of(ID, 1) == "http://hub.example:9000/"
    assert origins.url_of(ID, 2) == "http://hub.example:9001/"
    # Before it was opened, and without a port for it, its address on the main origin says what is wrong.
    for number in (None, 3):
        assert origins.url_of(ID, number) == f"http://hub.example:7000/w/{ID}/"


@pytest.mark.parametrize("ports", ["8000-8080", "8081-8090", "6999-7000"])
def test_the_ports_of_workspaces_must_not_be_codehubs_own(ports: str) -> None:
    (problem,) = problems(PORTS | {"CODEHUB_WORKSPACES_PORTS": ports})
    assert "must not contain port" in problem


@pytest.mark.parametrize("ports", ["9000", "9001-9000", "0-10", "65000-65536", "a-b", "1000-60000"])
def test_only_a_range_of_ports_is_one(ports: str) -> None:
    (problem,) = problems(PORTS | {"CODEHUB_WORKSPACES_PORTS": ports})
    assert "must be up to 2000 ports" in problem


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("CODEHUB_LIMITS_MAX_RUNNING_PER_USER", "-1", "a whole number of at least 1"),
        ("CODEHUB_LIMITS_MAX_RUNNING_GLOBAL", "many", "a whole number of at least 1"),
        ("CODEHUB_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
        ("CODEHUB_PORTS_SHARING", "everybody", "one of none, users, public"),
        ("CODEHUB_EGRESS_MODE", "closed", "one of open, allow-list, none"),
        ("CODEHUB_LOG_FORMAT", "xml", "one of json, text"),
        ("CODEHUB_WORKSPACES_INSTANCE_BACKEND", "docker", "one of local, local-docker, k8s"),
        ("CODEHUB_API_PORT", "65536", "a whole number from 1 to 65535"),
        ("CODEHUB_API_HOST", "http://x", "a host name or an IP address"),
        ("TTL_STANDBY_SECONDS", "0", "a whole number of seconds, at least 1"),
        ("TTL_ARCHIVE_SECONDS", "30m", "a whole number of seconds, at least 1"),
        ("CODEHUB_DATABASE_URL", "mysql://host/name", "a postgresql:// URL"),
        ("CODEHUB_DATABASE_URL", "postgresql://host:port/name", "a postgresql:// URL"),
        ("CODEHUB_REDIS_URL", "http://host", "a redis://, rediss:// or unix:// URL"),
        ("CODEHUB_TEMPORAL_ADDRESS", "temporal", "host:port, such as temporal.example:7233"),
        ("CODEHUB_TEMPORAL_ADDRESS", "temporal:0", "host:port, such as temporal.example:7233"),
        (
            "CODEHUB_PUBLIC_BASE_URL",
            "dev.example",
            "an http:// or https:// URL without user, password or query",
        ),
        ("CODEHUB_OIDC_SCOPES", "profile email", "scopes separated by spaces, among them openid"),
        ("CODEHUB_PUBLIC_BASE_URL", "http://[", "an http:// or https:// URL without user, password or query"),
    ],
)
def test_a_wrong_value_names_the_variable_the_value_and_what_is_allowed(
    name: str, value: str, allowed: str
) -> None:
    assert problems({name: value}) == [f"{name}={value}: must be {allowed}"]


def test_all_wrong_values_are_reported_at_once() -> None:
    environment = {
        "CODEHUB_LOG_LEVEL": "loud",
        "CODEHUB_LOG_FORMAT": "xml",
        "CODEHUB_API_PORT": "0",
        "CODEHUB_S3_BUCKET": "No",
        "CODEHUB_S3_ACCESS_KEY": "codehub",
        "TTL_STANDBY_SECONDS": "soon",
    }
    assert [problem.partition("=")[0].partition(" ")[0] for problem in problems(environment)] == [
        "CODEHUB_LOG_LEVEL",
        "CODEHUB_LOG_FORMAT",
        "CODEHUB_API_PORT",
        "CODEHUB_S3_BUCKET",
        "TTL_STANDBY_SECONDS",
        "CODEHUB_S3_ENDPOINT_URL",
        "CODEHUB_S3_SECRET_KEY",
    ]


@pytest.mark.parametrize("missing", EXTERNAL_S3)
def test_the_endpoint_and_both_keys_of_s3_go_together(missing: str) -> None:
    environment = {name: value for name, value in EXTERNAL_S3.items() if name != missing}
    (problem,) = problems(environment)
    assert problem.startswith(f"{missing} is not set: it must be set when CODEHUB_S3_")


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"ISSUER": "https://login.example"}, "CLIENT_ID"),
        ({"CLIENT_ID": "codehub"}, "ISSUER"),
        ({"CLIENT_ID": "codehub", "CLIENT_SECRET": MUST_NOT_APPEAR}, "ISSUER"),
        ({"ISSUER": "https://login.example", "ADMIN_GROUPS": "admins"}, "CLIENT_ID"),
    ],
)
def test_a_half_configured_provider_is_refused_in_one_sentence(given: dict[str, str], missing: str) -> None:
    (problem,) = problems({f"CODEHUB_OIDC_{name}": value for name, value in given.items()})
    assert problem.startswith(f"CODEHUB_OIDC_{missing} is not set: it must be set when CODEHUB_OIDC_")


@pytest.mark.parametrize("issuer", ["http://login.example", "login.example", "https://login.example?a=b"])
def test_an_issuer_needs_https_unless_it_is_on_this_machine(issuer: str) -> None:
    (problem,) = problems({"CODEHUB_OIDC_ISSUER": issuer, "CODEHUB_OIDC_CLIENT_ID": "codehub"})
    assert problem.startswith(f"CODEHUB_OIDC_ISSUER={issuer}: must be the https:// URL of the issuer")
    local = {"CODEHUB_OIDC_ISSUER": "http://127.0.0.1:9400", "CODEHUB_OIDC_CLIENT_ID": "codehub"}
    assert load_settings(local).oidc.issuer == "http://127.0.0.1:9400"


def test_the_issuer_is_kept_as_it_is_spelled() -> None:
    environment = {"CODEHUB_OIDC_ISSUER": "https://login.example/", "CODEHUB_OIDC_CLIENT_ID": "codehub"}
    assert load_settings(environment).oidc.issuer == "https://login.example/"


TEMPORAL = {"CODEHUB_TEMPORAL_ADDRESS": "temporal.example:7233"}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, False),
        ({"TLS": "true"}, True),
        ({"TLS": "false"}, False),
        ({"API_KEY": MUST_NOT_APPEAR}, True),
        ({"TLS_CA_FILE": "ca.pem"}, True),
        ({"TLS_CERT_FILE": "own.pem", "TLS_KEY_FILE": "own.key"}, True),
        ({"TLS_SERVER_NAME": "temporal.internal"}, True),
    ],
)
def test_temporal_uses_tls_when_any_tls_setting_is_set(given: dict[str, str], used: bool) -> None:
    named = {f"CODEHUB_TEMPORAL_{name}": value for name, value in given.items()}
    assert load_settings({**TEMPORAL, **named}).temporal.uses_tls is used


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"TLS_KEY_FILE": "k"}, "CODEHUB_TEMPORAL_TLS_CERT_FILE is not set: it must be set when {} is"),
        ({"TLS_CERT_FILE": "c"}, "CODEHUB_TEMPORAL_TLS_KEY_FILE is not set: it must be set when {} is"),
        ({"TLS": "perhaps"}, "{}=perhaps: must be true or false"),
        ({"TLS_SERVER_NAME": "no name"}, "{}=no name: must be a host name or an IP address"),
    ],
)
def test_an_incomplete_tls_configuration_is_refused(given: dict[str, str], problem: str) -> None:
    [name] = given
    variable = f"CODEHUB_TEMPORAL_{name}"
    assert problems({**TEMPORAL, variable: given[name]}) == [problem.format(variable)]


@pytest.mark.parametrize("name", ["API_KEY", "TLS_CA_FILE", "TLS_SERVER_NAME"])
def test_tls_cannot_be_off_when_another_setting_needs_it(name: str) -> None:
    variable = f"CODEHUB_TEMPORAL_{name}"
    assert problems({**TEMPORAL, variable: "x", "CODEHUB_TEMPORAL_TLS": "false"}) == [
        f"CODEHUB_TEMPORAL_TLS=false: must be true or unset when {variable} is set"
    ]


def test_the_embedded_server_has_no_tls() -> None:
    assert problems({"CODEHUB_TEMPORAL_TLS_CA_FILE": "ca.pem"}) == [
        "CODEHUB_TEMPORAL_ADDRESS is not set: it must be set when CODEHUB_TEMPORAL_TLS_CA_FILE is"
    ]


def test_an_api_key_of_temporal_needs_an_address() -> None:
    assert problems({"CODEHUB_TEMPORAL_API_KEY": MUST_NOT_APPEAR}) == [
        "CODEHUB_TEMPORAL_ADDRESS is not set: it must be set when CODEHUB_TEMPORAL_API_KEY is"
    ]


@pytest.mark.parametrize(
    ("instance", "storage"), [("local", "local-dir"), ("local-docker", "docker-volume"), ("k8s", "pvc")]
)
def test_the_storage_backend_follows_the_instance_backend(instance: str, storage: str) -> None:
    workspaces = load_settings({"CODEHUB_WORKSPACES_INSTANCE_BACKEND": instance}).workspaces
    assert workspaces.storage_backend == storage


def test_a_storage_backend_that_the_instances_cannot_mount_is_refused() -> None:
    environment = {
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "k8s",
        "CODEHUB_WORKSPACES_STORAGE_BACKEND": "local-dir",
    }
    (problem,) = problems(environment)
    assert problem.startswith("CODEHUB_WORKSPACES_STORAGE_BACKEND=local-dir: must be pvc when")
    assert problem.endswith("CODEHUB_WORKSPACES_INSTANCE_BACKEND is k8s")


def test_sockets_need_no_host() -> None:
    settings = load_settings(
        {
            "CODEHUB_DATABASE_URL": "postgresql://postgres@/codehub?host=/run/postgresql",
            "CODEHUB_REDIS_URL": "unix:///run/redis.sock",
        }
    )
    assert settings.database.url is not None
    assert settings.database.url.get_secret_value() == "postgresql://postgres@/codehub?host=/run/postgresql"


def test_printed_settings_contain_no_secret() -> None:
    settings = load_settings(
        {
            **EXTERNAL_S3,
            "CODEHUB_DATABASE_URL": f"postgresql://codehub:{MUST_NOT_APPEAR}@database/codehub",
            "CODEHUB_REDIS_URL": f"redis://:{MUST_NOT_APPEAR}@redis",
            "CODEHUB_TEMPORAL_ADDRESS": "temporal:7233",
            "CODEHUB_TEMPORAL_API_KEY": MUST_NOT_APPEAR,
        }
    )
    printed = [repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())]
    printed += [str(variable.printable_value(settings)) for variable in VARIABLES]
    assert MUST_NOT_APPEAR not in "".join(printed)
    assert "postgresql://codehub:********@database/codehub" in printed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CODEHUB_DATABASE_URL", f"mysql://codehub:{MUST_NOT_APPEAR}@database/codehub"),
        ("CODEHUB_DATABASE_URL", f"host=database password={MUST_NOT_APPEAR}"),
        ("CODEHUB_REDIS_URL", f":{MUST_NOT_APPEAR}@redis:6379"),
        ("CODEHUB_PUBLIC_BASE_URL", f"https://admin:{MUST_NOT_APPEAR}@dev.example"),
        ("CODEHUB_S3_ENDPOINT_URL", f"https://s3.example?secret={MUST_NOT_APPEAR}"),
        ("CODEHUB_S3_SECRET_KEY", MUST_NOT_APPEAR),
        ("CODEHUB_TEMPORAL_API_KEY", MUST_NOT_APPEAR),
    ],
)
def test_errors_contain_no_secret(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({name: value})
    assert MUST_NOT_APPEAR not in "".join(traceback.format_exception(raised.value))
    assert name in str(raised.value)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://user:hunter2@host", "redis://user:********@host"),
        ("redis://hunter2@host", "redis://********@host"),
        ("redis://user:hun@ter:2/#@host/0", "redis://user:********@host/0"),
        ("redis://user:hun?ter2@host", "redis://********"),
        ("redis://host?db=0&password=hunter2&ssl=1", "redis://host?db=0&password=********&ssl=1"),
        ("hunter2", "********"),
        ("password=hunter2 url=redis://host", "********"),
    ],
)
def test_passwords_in_urls_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


def test_an_unknown_variable_is_reported_with_a_suggestion() -> None:
    environment = {
        "CODEHUB_DATABASE_ULR": "",
        "CODEHUB_TTL_STANDBY_SECONDS": "",
        "CODEHUB_GENERAL_LOG_LEVEL": "",
        "CODEHUB_XYZZY": "",
    }
    assert unknown_variables(environment) == {
        "CODEHUB_DATABASE_ULR": "CODEHUB_DATABASE_URL",
        "CODEHUB_GENERAL_LOG_LEVEL": "CODEHUB_LOG_LEVEL",
        "CODEHUB_TTL_STANDBY_SECONDS": "TTL_STANDBY_SECONDS",
        "CODEHUB_XYZZY": None,
    }


def test_known_variables_and_those_of_other_programs_are_not_unknown() -> None:
    foreign = {"PATH": "", "TTL_OF_SOMETHING_ELSE": ""}
    assert unknown_variables(foreign | {variable.name: "" for variable in VARIABLES}) == {}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "CODEHUB_EGRESS_KEY is not set"),
        ({**GATEWAY, "CODEHUB_DOCKER_URL": "tcp://engine:2376"}, "tcp://engine:2376: .* not on this machine"),
        ({**DIRECT, "CODEHUB_DOCKER_URL": "tcp://engine:2376"}, "CODEHUB_DOCKER_PUBLISH_PORTS=true"),
    ],
)
def test_containers_need_a_gateway_and_sockets_that_they_can_reach(
    given: dict[str, str], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        docker_options_of(load_settings(given))


@pytest.mark.parametrize(
    ("given", "has_gateway", "publishes"),
    [
        (GATEWAY, True, False),
        (DIRECT, False, False),
        ({**DIRECT, "CODEHUB_DOCKER_PUBLISH_PORTS": "true"}, False, True),
    ],
)
def test_containers_have_a_gateway_and_no_published_ports_by_default(
    given: dict[str, str], *, has_gateway: bool, publishes: bool
) -> None:
    options = docker_options_of(load_settings(given))
    assert (options.egress is not None, options.publish_ports) == (has_gateway, publishes)
    assert options.sockets.path.is_absolute()


def test_an_engine_that_cannot_share_sockets_needs_published_ports() -> None:
    chosen = {"CODEHUB_DOCKER_URL": "tcp://engine:2376", "CODEHUB_DOCKER_PUBLISH_PORTS": "true"}
    assert docker_options_of(load_settings({**DIRECT, **chosen})).publish_ports


@pytest.mark.parametrize("egress", [{}, {"CODEHUB_DOCKER_EGRESS": "gateway"}])
def test_ports_are_not_published_behind_the_gateway(egress: dict[str, str]) -> None:
    expected = "CODEHUB_DOCKER_PUBLISH_PORTS=true: must be unset unless CODEHUB_DOCKER_EGRESS is direct"
    with pytest.raises(SettingsError, match=expected):
        load_settings({**GATEWAY, **egress, "CODEHUB_DOCKER_PUBLISH_PORTS": "true"})


def test_rules_of_sharing_come_from_the_settings() -> None:
    assert load_settings({}).sharing_rules == SharingRules(Sharing.USERS)
    wide = {"CODEHUB_PORTS_SHARING": "public", "CODEHUB_PORTS_MAX_SHARE_SECONDS": "60"}
    assert load_settings(wide).sharing_rules == SharingRules(Sharing.PUBLIC, timedelta(minutes=1))
