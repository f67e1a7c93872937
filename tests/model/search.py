"""Run the lifecycle model with random seeds for a while, or with one seed to shrink its counterexample."""

import argparse
import itertools
import random
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Lifecycle

SEEDS = 2**32
WALKS = 300
STEPS = 40


def search(minutes: float) -> None:
    """Try random seeds until the time is over; raise what the model raises, after printing its seed."""
    deadline = time.monotonic() + minutes * 60
    for seeds in itertools.count(1):
        number = random.randrange(SEEDS)  # noqa: S311
        try:
            run_seed(number, shrink=False)
        except Exception:
            print(f"The model failed. To shrink the counterexample: make search SEED={number}", flush=True)  # noqa: T201
            raise
        if time.monotonic() > deadline:
            print(f"The model held for {seeds * WALKS} walks of {STEPS} steps.")  # noqa: T201
            return


def run_seed(number: int, *, shrink: bool) -> None:
    """Run the walks of one seed; shrinking takes minutes."""
    machine = seed(number)(type("Lifecycle", (Lifecycle,), {}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=WALKS,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long to search")
    parser.add_argument("--seed", type=int, help="run only this seed, and shrink its counterexample")
    arguments = parser.parse_args()
    if arguments.seed is None:
        search(arguments.minutes)
    else:
        run_seed(arguments.seed, shrink=True)


if __name__ == "__main__":
    main()
