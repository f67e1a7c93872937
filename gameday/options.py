"""What a game is made of: with the same options, people and faults make the same choices."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    minutes: float
    seed: str
    backend: str = "local"
    users: int = 3
    faults_per_second: float = 1.0
    dockerd: bool = False
    """Whether the Docker engine itself is broken too, with everybody's containers."""

    @property
    def command(self) -> str:
        """Plays the same game again; chance in the machine itself remains."""
        words = (
            *("codehub", "gameday", "--minutes", f"{self.minutes:g}", "--seed", self.seed),
            *("--backend", self.backend, "--users", str(self.users)),
            *("--faults-per-second", f"{self.faults_per_second:g}"),
            *(("--dockerd",) if self.dockerd else ()),
        )
        return shlex.join(words)
