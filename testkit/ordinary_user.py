"""Runs a program as an ordinary user, even if our Python is in a directory that only root can enter."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from testkit.needs import need_program, need_root

UID = 64_321
# A Python below root's home is mounted over an empty one, in a mount namespace of its own.
_OPEN = """
set -e
if ! {become} test -x {python}; then
  mount --make-rprivate /
  mount --bind {prefix} /mnt
  mount -t tmpfs -o mode=0755 tmpfs {top}
  mkdir -p {prefix}
  mount --move /mnt {prefix}
fi
exec {become} {command}
"""


def as_ordinary_user(command: Sequence[str]) -> list[str]:
    """Return the command that runs this one without root privileges."""
    need_root()
    prefix = Path(sys.base_prefix)
    become = f"{need_program('setpriv')} --reuid {UID} --regid {UID} --clear-groups"
    script = _OPEN.format(
        become=become,
        python=shlex.quote(str(Path(sys.executable).resolve())),
        prefix=shlex.quote(str(prefix)),
        top=shlex.quote(str(Path(*prefix.parts[:2]))),
        command=shlex.join(command),
    )
    return [need_program("unshare"), "--mount", "/bin/sh", "-c", script]
