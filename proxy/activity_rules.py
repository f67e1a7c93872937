"""Rules that tell a person's activity from an IDE's own traffic. Pure; see ADR 0021."""

import re
from dataclasses import dataclass

from proxy.request_kind import BACKGROUND, READING_METHODS, request_kind_of
from proxy.transport.request_head import RequestHead

TEXT, BINARY = 1, 2
# Keep-alives are short. A long one: {"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}
MAX_KEEP_ALIVE_BYTES = 64

ANYTHING = re.compile(rb"")
NOTHING = re.compile(rb"(?!)")


@dataclass(frozen=True)
class MessageRules:
    """Which messages are activity, on the WebSockets at some paths, by how they start.

    Of a message in several frames, the first one counts. A start too short to match `idle` is activity.
    """

    paths: re.Pattern[bytes]
    active: re.Pattern[bytes] = ANYTHING
    idle: re.Pattern[bytes] = NOTHING
    longer_than: int = 0

    def is_activity(self, opcode: int, length: int, start: bytes) -> bool:
        return (
            (opcode in {TEXT, BINARY})
            and length > self.longer_than
            and self.active.search(start) is not None
            and self.idle.search(start) is None
        )


OTHER_MESSAGES = MessageRules(ANYTHING, longer_than=MAX_KEEP_ALIVE_BYTES)


@dataclass(frozen=True)
class ActivityRules:
    """Which requests and messages of an IDE are activity.

    Opening a page always is. So are requests that change something, unless an untouched tab sends them,
    and reads that only a person causes. The patterns match `METHOD /path?query`.
    """

    idle_changes: re.Pattern[bytes] = NOTHING
    active_reads: re.Pattern[bytes] = NOTHING
    messages: tuple[MessageRules, ...] = ()

    def is_activity_request(self, path: bytes, head: RequestHead) -> bool:
        if request_kind_of(head) is not BACKGROUND:
            return True
        if head.method not in READING_METHODS:
            return self.idle_changes.match(b"%b %b" % (head.method, path)) is None
        if self.active_reads is NOTHING:
            return False
        _, mark, query = head.target.partition(b"?")
        return self.active_reads.match(b"%b %b%b%b" % (head.method, path, mark, query)) is not None

    def messages_at(self, path: bytes) -> MessageRules:
        return next((rules for rules in self.messages if rules.paths.match(path)), OTHER_MESSAGES)


# A terminal's own replies when a program queries its position, kind, size or colors, and its focus
# reports. They arrive as if typed, after an escape character.
TERMINAL_REPLY = rb"(?:\[[?>=]?[\d;]*(?:[Rcnt]|\$y)|\[[IO]|[\]P_])"

# An untouched JupyterLab 4.6 polls kernels, sessions, terminals and the open directory every 10 s and
# stores the layout, changed or not; it polls the user and the kernel specs every minute. Its sockets
# answer pings. Whenever they open, it asks the kernel for its information, history and debugger state.
# Typing sends nothing until the document is saved, at the latest by autosave after two minutes.
JUPYTERLAB = ActivityRules(
    idle_changes=re.compile(rb"PUT /lab/api/workspaces/"),
    active_reads=re.compile(rb"GET /api/contents/[^?]+\?(?:.*&)?type=(?:file|notebook)(?:&|\Z)"),
    messages=(
        MessageRules(
            paths=re.compile(rb"/api/kernels/[^/]+/channels\Z"),
            idle=re.compile(rb'"msg_type":"(?:kernel_info|history|comm_info)_request"|"command":"debugInfo"'),
        ),
        MessageRules(
            paths=re.compile(rb"/terminals/websocket/"),
            active=re.compile(rb'\A\["stdin"'),
            idle=re.compile(rb'\A\["stdin","\\u001b' + TERMINAL_REPLY),
        ),
        MessageRules(paths=re.compile(rb"/api/events/subscribe\Z"), active=NOTHING),
    ),
)

# An untouched code-server 4.139 sends 24 keep-alives a minute, and every second that its own lock file
# has changed. The browser also echoes what programs write: output of terminals, changes of open files.
# So only messages with names that a person's hands cause count. `onDidChangeWindowActive` reports mouse
# or keyboard input after a pause, and a minute without any.
CODE_SERVER_INPUT_EVENTS = (
    rb".{7}\$(?:onDidChangeWindowActive|acceptEditorPropertiesChanged|acceptTabOperation"
    rb'|acceptDirtyStateChanged|participateInSave|acceptModelChanged.*"source":"cursor")'
)
CODE_SERVER_TERMINAL_INPUT = (
    rb"\x04\x04\x06d\x06.{1,5}?\x01\x0eremoteterminal\x01\x06\$input\x04\x02\x06.{1,3}?\x01."
)
# What precedes the first named message: acknowledgements of 18 bytes each, and its header.
CODE_SERVER_FIRST = rb"\A(?:\x01.{8}\0\0\0\x05.{5})*\x01.{12}"

CODE_SERVER = ActivityRules(
    messages=(
        MessageRules(
            paths=re.compile(rb"/[a-z]+-[0-9a-z]+\Z"),
            active=re.compile(
                rb"%b(?:%b|%b)" % (CODE_SERVER_FIRST, CODE_SERVER_INPUT_EVENTS, CODE_SERVER_TERMINAL_INPUT),
                re.DOTALL,
            ),
            idle=re.compile(
                CODE_SERVER_FIRST + CODE_SERVER_TERMINAL_INPUT + rb"\x1b" + TERMINAL_REPLY, re.DOTALL
            ),
        ),
    ),
)

OTHER = ActivityRules()

RULES = {"jupyterlab": JUPYTERLAB, "code-server": CODE_SERVER}


def rules_for(ide: str) -> ActivityRules:
    """Return the rules of an IDE; for an unknown one, longer messages count as activity."""
    return RULES.get(ide, OTHER)
