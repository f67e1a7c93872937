"""The worker as a process: ready file, metrics, graceful stop, and messages about wrong settings."""

import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from codehub.domain.states import DesiredState, Phase
from testkit.deployment import Servers, open_deployment
from testkit.processes import free_port
from testkit.waiting import until


@pytest.mark.timeout(600)
async def test_a_worker_signals_readiness_shows_metrics_and_stops_on_request(
    servers: Servers, tmp_path: Path
) -> None:
    ready_file, port = tmp_path / "ready", free_port()
    settings = {
        "CODEHUB_WORKER_READY_FILE": str(ready_file),
        "CODEHUB_WORKER_METRICS_PORT": str(port),
        "CODEHUB_WORKER_METRICS_HOST": "127.0.0.2",
    }
    async with open_deployment(servers, tmp_path) as deployment:
        with deployment.worker_process(**settings) as worker:

            async def ready() -> bool:
                return ready_file.exists()

            await until(ready, "the worker is ready")
            workspace_id = await deployment.create(DesiredState.STANDBY)
            await deployment.wake(workspace_id)
            await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
            async with aiohttp.ClientSession() as session:
                metrics = await (await session.get(f"http://127.0.0.2:{port}/metrics")).text()
            assert "temporal_workflow_completed{" in metrics
            assert 'workflow_type="Provisioning"' in metrics
            worker.send_signal(signal.SIGTERM)

            async def ended() -> bool:
                return worker.poll() is not None

            await until(ended, "the worker ended")
            assert worker.returncode == 0
    assert "stopped" in (tmp_path / "worker.log").read_text()


def test_a_worker_without_settings_names_the_missing_ones() -> None:
    run = subprocess.run(
        (sys.executable, "-m", "worker"), env={}, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 2
    assert "CODEHUB_TEMPORAL_ADDRESS is not set" in run.stderr
    assert "Traceback" not in run.stderr
