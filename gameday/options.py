"""The options of a game: with the same options, people and faults make the same choices."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options of `codehub gameday`."""

    minutes: float
    seed: str
    backend: str = "local"
    users: int = 3
    faults_per_second: float = 1.0
    dockerd: bool = False
    """Whether to break the Docker engine too, which affects every container on the machine."""
    cluster: str = ""
    """The program that operates the cluster of the backend k8s."""

    @property
    def command(self) -> str:
        """Return the command that plays the same game again, except for the timing of the machine."""
        words = (
            *("codehub", "gameday", "--minutes", f"{self.minutes:g}", "--seed", self.seed),
            *("--backend", self.backend, "--users", str(self.users)),
            *("--faults-per-second", f"{self.faults_per_second:g}"),
            *(("--dockerd",) if self.dockerd else ()),
            *(("--cluster", self.cluster) if self.cluster else ()),
        )
        return shlex.join(words)
