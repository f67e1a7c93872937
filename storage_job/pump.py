"""Moves a tar stream from one child to the next, past the scanner."""

from typing import TYPE_CHECKING

from storage_job.children import PIPE_BYTES, write_all

if TYPE_CHECKING:
    from storage_job.children import Child
    from storage_job.scanner import TarScanner


def copy_scanned(source: "Child", sink: "Child", scanner: "TarScanner") -> None:
    """Block until the stream has ended well; meant for a thread, which ends when its children are killed."""
    buffer = memoryview(bytearray(PIPE_BYTES))
    with sink.stdin:
        while count := source.read_into(buffer):
            scanner.feed(buffer[:count])
            try:
                write_all(sink.stdin, buffer[:count])
            except BrokenPipeError:
                # Its status says why it stopped reading; the broken pipe is only the consequence.
                sink.check()
                raise
    # A source that died leaves a short stream, so ask for its status before judging the stream.
    source.check()
    scanner.finish()
