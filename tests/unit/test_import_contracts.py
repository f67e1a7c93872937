"""Each import contract can fail: a deliberate violation breaks it."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from grimp import ImportGraph, build_graph
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

ROOT = Path(__file__).parents[2]
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
SESSION: dict[str, Any] = CONFIGURATION["session_options"]
CONTRACTS: dict[str, dict[str, Any]] = {each["name"]: each for each in CONFIGURATION["contracts_options"]}
CONTRACT_TYPES: dict[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}

ONE_WAY = "Imports point one way"
NO_WORKFLOWS = "The API, the proxy and the egress gateway know no workflows or activities"
GATEWAY = (
    "The egress gateway holds no keys but the database's: no adapters, no providers, no wiring of others"
)
ROUTERS = "Routers write through services and read through queries"
TRANSPORT = "The proxy's transport imports only the standard library: no product code, no web framework"
ADAPTERS = "Adapters do not import each other"
NO_DATABASE = "Adapters import no database code and no services"
DOCKER = "Only the Docker adapter, the embedded stack and the game day use aiodocker"
TEMPORAL = "Only Temporal code uses temporalio: workflows, activities, the worker, its adapter and wiring"
KUBERNETES = "Only the Kubernetes adapter and the game day use lightkube"
REDIS = "Only the Redis adapter uses redis"
S3 = "Only the S3 adapter, the embedded S3 server and the storage job use S3 libraries"
OIDC = "Only the OpenID Connect adapter uses joserfc"
WEB = "Only the API uses FastAPI and Starlette"
SETTINGS = "Only entry points and wiring read settings"
JOB_STANDS_ALONE = "The storage job stands alone"
JOB_IS_RUN = "Nobody imports the storage job: it is run, not called"
AGENT_STANDS_ALONE = "The agent inside instances imports only these modules of the standard library"
AGENT_IS_RUN = "Nobody imports the agent: it is run, not called"
NO_TESTS = "The product imports no tests, test kit or benchmarks"
TOOLS_NO_TESTS = "Benchmarks and the test kit import no tests"
GAMEDAY = "Only `codehub gameday` imports the game day, which is installed separately"
PURE = "The domain is pure: it imports only these modules of the standard library"


class Violation(NamedTuple):
    """An import that breaks a contract. Both modules exist; an external one is its top-level package."""

    contract: str
    importer: str
    imported: str


VIOLATIONS = (
    Violation(PURE, "codehub.domain.planner", "sqlalchemy"),
    Violation(PURE, "codehub.domain.planner", "os"),
    Violation(PURE, "codehub.domain.planner", "codehub.db.models"),
    Violation(ONE_WAY, "codehub.domain.planner", "codehub.db"),
    Violation(ONE_WAY, "codehub.db.session", "codehub.services"),
    Violation(ONE_WAY, "codehub.services", "activities"),
    Violation(ONE_WAY, "workflows", "worker"),
    Violation(ONE_WAY, "gameday", "cli"),
    Violation(NO_WORKFLOWS, "api", "workflows"),
    Violation(NO_WORKFLOWS, "proxy", "activities"),
    Violation(NO_WORKFLOWS, "egress", "workflows"),
    Violation(GATEWAY, "egress.wiring", "codehub.adapters.docker"),
    Violation(GATEWAY, "egress.wiring", "codehub.bootstrap"),
    Violation(ONE_WAY, "egress.gateway", "proxy"),
    Violation(ROUTERS, "api.routers.workspaces", "codehub.db.models"),
    Violation(ROUTERS, "api.routers.history", "codehub.db.events"),
    Violation(ROUTERS, "api.routers.admin", "sqlalchemy"),
    Violation(TRANSPORT, "proxy.transport.server", "codehub.services.identity"),
    Violation(TRANSPORT, "proxy.transport.routing", "codehub.ports"),
    Violation(TRANSPORT, "proxy.transport.exchange", "proxy.front_door"),
    Violation(TRANSPORT, "proxy.transport.local_responses", "starlette"),
    Violation(TRANSPORT, "proxy.transport.server", "uvicorn"),
    Violation(TRANSPORT, "proxy.transport.upstream_pool", "aiohttp"),
    Violation(ADAPTERS, "codehub.adapters.docker", "codehub.adapters.local"),
    Violation(NO_DATABASE, "codehub.adapters.docker.instances", "codehub.db.session"),
    Violation(NO_DATABASE, "codehub.adapters.redis.events", "codehub.services.workspaces"),
    Violation(DOCKER, "codehub.adapters.local.instances", "aiodocker"),
    Violation(DOCKER, "codehub.embedded.stack", "aiodocker"),
    Violation(TEMPORAL, "api.health_checks", "temporalio"),
    Violation(TEMPORAL, "codehub.services.workspaces", "temporalio"),
    Violation(KUBERNETES, "codehub.providers", "lightkube"),
    Violation(KUBERNETES, "codehub.adapters.docker.volumes", "lightkube"),
    Violation(REDIS, "codehub.bootstrap", "redis"),
    Violation(REDIS, "worker.relay", "redis"),
    Violation(S3, "activities.archive", "aioboto3"),
    Violation(S3, "codehub.embedded.stack", "aiobotocore"),
    Violation(S3, "cli.main", "botocore"),
    Violation(S3, "codehub.adapters.s3.archives", "obstore"),
    Violation(OIDC, "codehub.services.oidc", "joserfc"),
    Violation(WEB, "proxy.front_door", "starlette"),
    Violation(WEB, "codehub.services.errors", "fastapi"),
    Violation(SETTINGS, "codehub.services", "codehub.settings"),
    Violation(SETTINGS, "activities", "codehub.settings"),
    Violation(JOB_STANDS_ALONE, "storage_job.__main__", "codehub.domain"),
    Violation(JOB_IS_RUN, "activities", "storage_job"),
    Violation(AGENT_STANDS_ALONE, "workspace_agent.__main__", "codehub.domain"),
    Violation(AGENT_STANDS_ALONE, "workspace_agent.services", "aiohttp"),
    Violation(AGENT_IS_RUN, "codehub.adapters.local.launcher", "workspace_agent.options"),
    Violation(NO_TESTS, "worker.__main__", "testkit.crash_points"),
    Violation(NO_TESTS, "codehub.embedded", "tests"),
    Violation(NO_TESTS, "gameday", "benchmarks"),
    Violation(TOOLS_NO_TESTS, "benchmarks", "tests"),
    Violation(TOOLS_NO_TESTS, "testkit", "tests"),
    Violation(GAMEDAY, "cli.doctor", "gameday"),
    Violation(GAMEDAY, "codehub.embedded", "gameday"),
)

IMPURE = {
    "from datetime import datetime\n\nNOW = datetime.now()\n": "datetime.datetime.now",
    "import datetime\n\nTODAY = datetime.date.today()\n": "datetime.date.today",
    "import time\n": "time",
    "import uuid\n": "uuid",
    "from random import random\n": "random",
    "import os\n": "os",
    "from pathlib import Path\n": "pathlib",
}


@pytest.fixture(scope="module")
def imports() -> ImportGraph:
    """Return the imports of all packages; copy before adding to them."""
    return build_graph(*SESSION["root_packages"], include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_code_keeps_its_contracts(imports: ImportGraph, contract: str) -> None:
    assert is_kept(contract, imports)


@pytest.mark.parametrize(
    "violation", VIOLATIONS, ids=[f"{each.importer} -> {each.imported}" for each in VIOLATIONS]
)
def test_a_violation_breaks_its_contract(imports: ImportGraph, violation: Violation) -> None:
    assert {violation.importer, violation.imported} <= imports.modules
    with_violation = deepcopy(imports)
    with_violation.add_import(importer=violation.importer, imported=violation.imported)
    assert not is_kept(violation.contract, with_violation)


def test_every_contract_has_a_violation() -> None:
    assert {violation.contract for violation in VIOLATIONS} == CONTRACTS.keys()


def test_the_linter_exits_with_a_failure_when_a_contract_is_broken(tmp_path: Path) -> None:
    (tmp_path / "upper").mkdir()
    (tmp_path / "lower").mkdir()
    (tmp_path / "upper" / "__init__.py").touch()
    (tmp_path / "lower" / "__init__.py").write_text("import upper\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_packages = ["upper", "lower"]\n'
        '[[tool.importlinter.contracts]]\nname = "One way"\ntype = "layers"\nlayers = ["upper", "lower"]\n'
    )
    command = [bin_path("lint-imports"), "--no-cache", "--no-logo"]
    result = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert "One way BROKEN" in result.stdout


def test_every_package_is_under_contract() -> None:
    packages = {each.parent.name for each in ROOT.glob("*/__init__.py")}
    assert packages == set(SESSION["root_packages"])


@pytest.mark.parametrize(("source", "banned"), IMPURE.items(), ids=IMPURE.values())
def test_the_domain_may_not_use_clocks_ids_randomness_or_the_environment(source: str, banned: str) -> None:
    assert f"TID251 `{banned}` is banned" in ruff(source, "codehub/domain/x.py")


def test_code_outside_the_domain_may_use_them() -> None:
    assert [ruff(source, "codehub/services/x.py") for source in IMPURE] == [""] * len(IMPURE)


def is_kept(name: str, imports: ImportGraph) -> bool:
    options = CONTRACTS[name]
    contract = CONTRACT_TYPES[options["type"]](name, SESSION, options)
    # Checking changes the graph.
    return contract.check(deepcopy(imports), verbose=False).kept


def ruff(source: str, filename: str) -> str:
    """Return what ruff reports as banned in a file of this name."""
    options = ["--select", "TID251", "--output-format", "concise", "--quiet", "--no-cache"]
    command = [bin_path("ruff"), "check", *options, "--stdin-filename", filename, "-"]
    result = subprocess.run(command, cwd=ROOT, input=source, check=False, capture_output=True, text=True)
    assert result.stderr == ""
    return result.stdout


def bin_path(program: str) -> str:
    return str(Path(sys.executable).parent / program)
