"""`python -m benchmarks.compression.filter compress|decompress`: the job's compression as a filter."""

import os
import sys

from storage_job.compression import Decompressor, new_compressor
from storage_job.tar_process import PIPE_BYTES

LEVEL = 3


def compress() -> None:
    compressor, buffer = new_compressor(LEVEL), memoryview(bytearray(PIPE_BYTES))
    while count := os.readv(sys.stdin.fileno(), [buffer]):
        sys.stdout.buffer.write(compressor.compress(buffer[:count]))
    sys.stdout.buffer.write(compressor.flush())


def decompress() -> None:
    decompressor, buffer = Decompressor(".tar.zst"), memoryview(bytearray(PIPE_BYTES))
    while count := os.readv(sys.stdin.fileno(), [buffer]):
        for piece in decompressor.feed(buffer[:count]):
            sys.stdout.buffer.write(piece)
    decompressor.finish()


if __name__ == "__main__":
    {"compress": compress, "decompress": decompress}[sys.argv[1]]()
