"""Removes control characters from text that workspaces and other users wrote: a terminal would obey them."""

import codecs
import json
import re

REPLACEMENT = "�"
# Control sequences, terminated strings, and other sequences. An unterminated string ends with its line.
ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
LINE_END = re.compile(r"\r\n?")


def printable(text: str) -> str:
    """Replace control characters and those that reorder text, such as bidirectional overrides."""
    return "".join(each if each.isprintable() or each in "\n\t" else REPLACEMENT for each in text)


def printable_json(document: str) -> str:
    """Escape characters that JSON allows but a terminal would obey; the meaning stays the same."""
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in document
    )


class LogFilter:
    """Turns the bytes of a log into text that is safe for a terminal, without colors."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def filter(self, content: bytes) -> str:
        text = ESCAPE_SEQUENCE.sub("", self._decoder.decode(content))
        # A lone carriage return would overwrite text that was printed before.
        return printable(LINE_END.sub("\n", text))
