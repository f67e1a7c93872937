"""Nothing that a workspace or another user wrote commands the terminal."""

import json

import pytest

from cli.control_characters import LogFilter, printable, printable_json

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
REORDERING = list("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c\ufeff")


@pytest.mark.parametrize("character", CONTROLS + REORDERING, ids=lambda each: f"U+{ord(each):04X}")
def test_no_control_character_is_printed(character: str) -> None:
    assert printable(f"a{character}b") == "a�b"
    assert character not in LogFilter().filter(f"a{character}b".encode())
    document = printable_json(json.dumps({"name": f"a{character}b"}, ensure_ascii=False))
    assert character not in document
    assert json.loads(document) == {"name": f"a{character}b"}


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\x", "x"),
        ("\x1b(B\x1b7x", "x"),
        ("\x1b]0;never ends\nnext line\n", "0;never ends\nnext line\n"),
        ("10 %\r20 %\r\n", "10 %\n20 %\n"),
        ("héllo 你好 🙂\n", "héllo 你好 🙂\n"),
    ],
)
def test_sequences_are_removed_and_text_is_kept(log: str, shown: str) -> None:
    assert LogFilter().filter(log.encode()) == shown


def test_a_character_may_arrive_in_pieces() -> None:
    log_filter = LogFilter()
    assert "".join(log_filter.filter(bytes([each])) for each in "aé🙂b".encode()) == "aé🙂b"
