"""The attributes of a home's own directory, which no rename can carry over to a volume's mount point."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class RootAttributes:
    status: os.stat_result
    extended: dict[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(path.stat(), _extended(path))

    def apply_to(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.status.st_uid, self.status.st_gid)
        for name in _extended(path).keys() - self.extended.keys():
            os.removexattr(path, name)
        for name, value in self.extended.items():
            os.setxattr(path, name, value)
        path.chmod(stat.S_IMODE(self.status.st_mode))
        os.utime(path, ns=(self.status.st_atime_ns, self.status.st_mtime_ns))


def _extended(path: Path) -> dict[str, bytes]:
    # Labels of the kernel's security modules belong to the mount, not to the archive.
    names = (name for name in os.listxattr(path) if not name.startswith("security."))
    return {name: os.getxattr(path, name) for name in names}
