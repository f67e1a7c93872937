"""The attempts, as data. To add one, add it to a list here; it then runs in every origin mode."""

from tests.attacks.attempts.attempt import Attempt, Control, Goal
from tests.attacks.attempts.cookies import COOKIES
from tests.attacks.attempts.frames import FRAMES, WORKERS
from tests.attacks.attempts.neighbors import NEIGHBORS
from tests.attacks.attempts.requests import REQUESTS

ATTEMPTS = {each.name: each for each in (*REQUESTS, *FRAMES, *WORKERS, *NEIGHBORS, *COOKIES)}

__all__ = ["ATTEMPTS", "Attempt", "Control", "Goal"]
