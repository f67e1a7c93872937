"""Names of what an engine holds tell whose it is, and nobody else's names do."""

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, job_name, parse_container_name

WORKSPACE = WorkspaceId("0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44")


def test_a_container_tells_its_workspace() -> None:
    assert container_name(WORKSPACE) == f"codehub-ws-{WORKSPACE}"
    assert parse_container_name(container_name(WORKSPACE)) == WORKSPACE


@pytest.mark.parametrize("name", [job_name(WORKSPACE), "codehub-ws-", f"x-codehub-ws-{WORKSPACE}", "redis"])
def test_any_other_container_is_nobodys(name: str) -> None:
    assert parse_container_name(name) is None


def test_a_workspace_has_one_job_at_a_time() -> None:
    assert job_name(WORKSPACE) == f"codehub-job-{WORKSPACE}"
