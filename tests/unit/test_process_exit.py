"""A process exits with its status and all output, without waiting for native threads."""

import subprocess
import sys

SCRIPT = """
import atexit, logging, sys
from codehub.process_exit import exit_process
atexit.register(print, "finalized")
logging.basicConfig(stream=sys.stderr)
logging.warning("logged")
sys.stdout.write("said")
exit_process(3)
"""


def test_output_is_flushed_and_nothing_is_finalized() -> None:
    run = subprocess.run((sys.executable, "-c", SCRIPT), capture_output=True, text=True, check=False)
    assert run.returncode == 3
    assert run.stdout == "said"
    assert "logged" in run.stderr
