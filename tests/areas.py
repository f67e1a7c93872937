"""The areas of CodeHub and their tests: `make t AREA=proxy` runs those of one area."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Area:
    """What was changed, and the tests to run then; tests are directories or patterns below `tests`."""

    changed: tuple[str, ...]
    tests: tuple[str, ...]

    def paths(self) -> list[Path]:
        """Return the directories and files of the tests."""
        return sorted(path for pattern in self.tests for path in (ROOT / "tests").glob(pattern))

    def files(self) -> set[Path]:
        paths = self.paths()
        below = {file for path in paths if path.is_dir() for file in path.rglob("test_*.py")}
        return below | {path for path in paths if path.is_file()}


AREAS = {
    "domain": Area(("codehub/domain",), ("unit/domain", "model")),
    "model": Area(("tests/model",), ("model",)),
    "db": Area(
        ("codehub/db", "migrations"),
        (
            "integration/test_*_sql.py",
            "integration/test_*queries*.py",
            "integration/test_limits.py",
            "integration/test_m1_*.py",
            "integration/test_migrations*.py",
            "integration/test_query_plans.py",
            "integration/test_snapshots.py",
            "integration/test_state_requests.py",
        ),
    ),
    "services": Area(
        ("codehub/services",),
        (
            "integration/test_audit_log.py",
            "integration/test_backends.py",
            "integration/test_disabled_users.py",
            "integration/test_history.py",
            "integration/test_home_store.py",
            "integration/test_identity*.py",
            "integration/test_incomplete_archives.py",
            "integration/test_lockout_of_others.py",
            "integration/test_port_shares.py",
            "integration/test_recovery.py",
            "integration/test_retention.py",
            "integration/test_tokens.py",
            "integration/test_usage.py",
            "integration/test_users.py",
            "integration/test_views.py",
            "integration/test_waiting.py",
            "integration/test_workspace_c*.py",
            "unit/test_audit_trail.py",
            "unit/test_descriptions.py",
            "unit/test_activity_rules.py",
        ),
    ),
    "workflows": Area(
        ("workflows", "activities", "worker", "codehub/contracts.py"),
        (
            "workflows",
            "replay",
            "chaos",
            "unit/test_policies.py",
            "unit/test_registry.py",
            "unit/test_step_monitor.py",
        ),
    ),
    "adapters": Area(
        ("codehub/adapters", "codehub/ports", "workspace_agent"),
        (
            "contracts",
            "integration/test_local_*.py",
            "integration/test_redis_*.py",
            "integration/test_relay*.py",
            "integration/test_temporal_*.py",
            "unit/test_local_*.py",
            "unit/test_temporal_*.py",
            "unit/test_instance_ports.py",
            "unit/test_workspace_agent*.py",
        ),
    ),
    "docker": Area(("codehub/adapters/docker",), ("docker", "contracts", "integration/test_docker_probe.py")),
    "kubernetes": Area(
        ("codehub/adapters/kubernetes", "testkit/kubernetes"), ("kubernetes", "unit/test_kubernetes_*.py")
    ),
    "storage": Area(
        ("storage_job", "codehub/adapters/s3", "codehub/job_protocol.py"),
        ("integration/test_storage_job_*.py", "unit/test_storage_job_*.py", "adversarial"),
    ),
    "api": Area(
        ("api",), ("api", "unit/test_live_*.py", "unit/test_request_hash.py", "unit/test_shown_progress.py")
    ),
    "dashboard": Area(("api/dashboard",), ("e2e", "unit/test_dashboard_files.py", "unit/test_words.py")),
    "proxy": Area(("proxy",), ("proxy", "front_door", "unit/test_proxy_*.py", "unit/test_cookies.py")),
    "origins": Area(
        ("codehub/origins.py", "api/security", "proxy/entrance.py", "proxy/hosts.py"), ("attacks",)
    ),
    "egress": Area(("egress", "codehub/domain/egress.py"), ("egress", "unit/test_egress_*.py")),
    "cli": Area(
        ("cli",),
        ("cli", "integration/test_cli_user.py", "unit/test_cli_*.py", "unit/test_formatting.py"),
    ),
    "embedded": Area(
        ("codehub/embedded",),
        (
            "integration/test_embedded_*.py",
            "integration/test_up*.py",
            "unit/test_embedded_*.py",
            "unit/test_free_ports.py",
            "unit/test_process_exit.py",
        ),
    ),
    "settings": Area(
        ("codehub/settings", "codehub/logs.py"),
        ("unit/test_settings.py", "unit/test_logs.py", "unit/test_allowed_images.py"),
    ),
    "gameday": Area(("gameday",), ("gameday", "docker/test_gameday_stage.py")),
    "deploy": Area(
        ("deploy", "docker-compose.yml", "images", "monitoring"), ("deploy", "images", "bare_machine")
    ),
    "benchmarks": Area(("benchmarks",), ("unit/test_benchmark_*.py",)),
    "repository": Area(
        ("docs", "pyproject.toml", "Makefile", ".ci", "testkit"),
        (
            "unit/test_areas.py",
            "unit/test_documents.py",
            "unit/test_import_contracts.py",
            "unit/test_mutations.py",
            "unit/test_repository.py",
            "unit/test_wheels.py",
        ),
    ),
}
