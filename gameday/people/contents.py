"""What people call their files, and what they write into them."""

from random import Random

NAMES = (
    "notes.txt",
    "src/main.py",
    "src/deep/er/still/module.py",
    "a name with spaces.md",
    "größe-文件.txt",
    ".hidden",
    "-n",
    "100%.log",
    "quote'\"$(x).sh",
)
BIG_NAME = "big/data.bin"
# Few and only one for each home, because all homes share a small disk.
BIG_SHARE = 0.06
SMALLEST_BIG_BYTES = 1 << 20
BIG_DOUBLINGS = 4.3
MOST_SMALL_BYTES = 6000
MARK_BYTES = 16


def pick_name(random: Random) -> str:
    return BIG_NAME if random.random() < BIG_SHARE else random.choice(NAMES)


def make_content(random: Random, name: str) -> bytes:
    """No two are alike: what is found later tells which request wrote it."""
    if name == BIG_NAME:
        size = int(SMALLEST_BIG_BYTES * 2 ** random.uniform(0, BIG_DOUBLINGS))
    else:
        size = MARK_BYTES + random.randint(0, MOST_SMALL_BYTES)
    return random.randbytes(size)
