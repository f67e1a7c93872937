"""What of an IDE's traffic is somebody's work; seen in real tabs, see ADR 0021. Pure."""

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
    """What is work among the messages on the WebSockets at some paths, by how they start.

    Of a message in several frames, the first one counts. What is too short to be recognised is work.
    """

    paths: re.Pattern[bytes]
    work: re.Pattern[bytes] = ANYTHING
    idle: re.Pattern[bytes] = NOTHING
    longer_than: int = 0

    def is_use(self, opcode: int, length: int, start: bytes) -> bool:
        return (
            (opcode in {TEXT, BINARY})
            and length > self.longer_than
            and self.work.search(start) is not None
            and self.idle.search(start) is None
        )


OTHER_MESSAGES = MessageRules(ANYTHING, longer_than=MAX_KEEP_ALIVE_BYTES)


@dataclass(frozen=True)
class ActivityRules:
    """What of an IDE's traffic is somebody's work.

    Opening a page always is. So are requests that change something, unless an untouched tab makes them,
    and those that read what only a person asks for. The patterns see `METHOD /path?query`.
    """

    idle_changes: re.Pattern[bytes] = NOTHING
    work_reads: re.Pattern[bytes] = NOTHING
    messages: tuple[MessageRules, ...] = ()

    def is_use_request(self, path: bytes, head: RequestHead) -> bool:
        if request_kind_of(head) is not BACKGROUND:
            return True
        if head.method not in READING_METHODS:
            return self.idle_changes.match(b"%b %b" % (head.method, path)) is None
        if self.work_reads is NOTHING:
            return False
        _, mark, query = head.target.partition(b"?")
        return self.work_reads.match(b"%b %b%b%b" % (head.method, path, mark, query)) is not None

    def messages_at(self, path: bytes) -> MessageRules:
        return next((rules for rules in self.messages if rules.paths.match(path)), OTHER_MESSAGES)


# What a terminal says by itself when a program asks it for its position, kind, size or colours, or that it
# has or has lost the focus: told as if typed, after an escape character.
TERMINAL_ANSWER = rb"(?:\[[?>=]?[\d;]*(?:[Rcnt]|\$y)|\[[IO]|[\]P_])"

# 4.6 untouched: every 10 s it polls kernels, sessions, terminals, the directory on display and stores the
# layout, changed or not; each minute user and kernel specs. Its sockets answer pings. When they are
# opened, again or first, the kernel is asked for its information, its history and its debugger's state.
# Typing sends nothing until the document is saved, by itself within two minutes.
JUPYTERLAB = ActivityRules(
    idle_changes=re.compile(rb"PUT /lab/api/workspaces/"),
    work_reads=re.compile(rb"GET /api/contents/[^?]+\?(?:.*&)?type=(?:file|notebook)(?:&|\Z)"),
    messages=(
        MessageRules(
            paths=re.compile(rb"/api/kernels/[^/]+/channels\Z"),
            idle=re.compile(rb'"msg_type":"(?:kernel_info|history|comm_info)_request"|"command":"debugInfo"'),
        ),
        MessageRules(
            paths=re.compile(rb"/terminals/websocket/"),
            work=re.compile(rb'\A\["stdin"'),
            idle=re.compile(rb'\A\["stdin","\\u001b' + TERMINAL_ANSWER),
        ),
        MessageRules(paths=re.compile(rb"/api/events/subscribe\Z"), work=NOTHING),
    ),
)

# 4.139 untouched: 24 keep-alives a minute, and once a second that a file has changed, which is its own
# lock file. What programs write comes back from the browser: output of terminals, changes of open files.
# So a message counts by its name: one that only somebody's hands cause. `onDidChangeWindowActive` tells
# that mouse or keys are moved again, and that they have not been for a minute.
CODE_SERVER_HANDS = (
    rb".{7}\$(?:onDidChangeWindowActive|acceptEditorPropertiesChanged|acceptTabOperation"
    rb'|acceptDirtyStateChanged|participateInSave|acceptModelChanged.*"source":"cursor")'
)
CODE_SERVER_INPUT = rb"\x04\x04\x06d\x06.{1,5}?\x01\x0eremoteterminal\x01\x06\$input\x04\x02\x06.{1,3}?\x01."
# Before the first message with a name: acknowledgements, 18 bytes each, and its header.
CODE_SERVER_FIRST = rb"\A(?:\x01.{8}\0\0\0\x05.{5})*\x01.{12}"

CODE_SERVER = ActivityRules(
    messages=(
        MessageRules(
            paths=re.compile(rb"/[a-z]+-[0-9a-z]+\Z"),
            work=re.compile(
                rb"%b(?:%b|%b)" % (CODE_SERVER_FIRST, CODE_SERVER_HANDS, CODE_SERVER_INPUT), re.DOTALL
            ),
            idle=re.compile(CODE_SERVER_FIRST + CODE_SERVER_INPUT + rb"\x1b" + TERMINAL_ANSWER, re.DOTALL),
        ),
    ),
)

OTHER = ActivityRules()

RULES = {"jupyterlab": JUPYTERLAB, "code-server": CODE_SERVER}


def rules_for(ide: str) -> ActivityRules:
    """Of an IDE that is not known, longer messages count."""
    return RULES.get(ide, OTHER)
