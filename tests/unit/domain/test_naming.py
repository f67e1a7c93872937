"""Names are stable and DNS-safe, and contain only canonical ids."""

import re

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import (
    ArchiveName,
    archive_key,
    container_name,
    job_name,
    meta_key,
    parse_archive_key,
    parse_container_name,
    parse_volume_name,
    parse_workspace_id,
    volume_name,
)
from tests.unit.domain.builders import OLD_KEY, OLD_OP, WORKSPACE

DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def test_names_are_those_of_the_contract() -> None:
    assert container_name(WORKSPACE) == f"codehub-ws-{WORKSPACE}"
    assert job_name(WORKSPACE) == f"codehub-job-{WORKSPACE}"
    assert volume_name(WORKSPACE) == f"ws-{WORKSPACE}-home"
    assert archive_key(WORKSPACE, OLD_OP) == f"archives/{WORKSPACE}/{OLD_OP}/home.tar.zst"
    assert meta_key(OLD_KEY) == f"archives/{WORKSPACE}/{OLD_OP}/home.tar.zst.meta"


@pytest.mark.parametrize("name", [container_name(WORKSPACE), job_name(WORKSPACE), volume_name(WORKSPACE)])
def test_names_are_dns_labels(name: str) -> None:
    assert DNS_1123.fullmatch(name)


def test_the_workspace_of_a_container_is_parsed_from_its_name() -> None:
    assert parse_container_name(container_name(WORKSPACE)) == WORKSPACE


@pytest.mark.parametrize("name", [job_name(WORKSPACE), "codehub-ws-", f"x-codehub-ws-{WORKSPACE}", "redis"])
def test_any_other_container_belongs_to_no_workspace(name: str) -> None:
    assert parse_container_name(name) is None


def test_the_workspace_of_a_volume_is_parsed_from_its_name() -> None:
    assert parse_volume_name(volume_name(WORKSPACE)) == WORKSPACE
    assert parse_volume_name(container_name(WORKSPACE)) is None


@pytest.mark.parametrize("key", [OLD_KEY, meta_key(OLD_KEY), OLD_KEY.replace(".zst", ".gz")])
def test_the_workspace_of_an_archive_is_parsed_from_its_key(key: str) -> None:
    assert parse_archive_key(key) == ArchiveName(WORKSPACE, OLD_OP)


@pytest.mark.parametrize(
    "key",
    ["", "archives/", "archives/x/y/home.tar.zst", f"backup/{OLD_KEY}", f"{OLD_KEY}.tmp", f"{OLD_KEY}\n"],
)
def test_any_other_key_belongs_to_no_workspace(key: str) -> None:
    assert parse_archive_key(key) is None


@pytest.mark.parametrize(
    "text", ["", "..", "../../etc", WORKSPACE.upper().replace("1", "A"), f"{WORKSPACE}\n"]
)
def test_only_a_canonical_id_becomes_part_of_a_name(text: str) -> None:
    with pytest.raises(ValueError, match="not a canonical UUID"):
        parse_workspace_id(text)
    with pytest.raises(ValueError, match="not a canonical UUID"):
        volume_name(WorkspaceId(text))


def test_a_canonical_id_is_accepted() -> None:
    assert parse_workspace_id(WORKSPACE) == WORKSPACE
