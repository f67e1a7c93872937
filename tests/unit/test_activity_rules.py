"""Activity rules, on messages that real tabs sent: untouched tabs are idle, people are not."""

import json

import pytest

from proxy.activity_rules import rules_for
from proxy.transport.request_head import RequestHead, RequestHeadReader

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
JUPYTERLAB, CODE_SERVER, UNKNOWN = IDES = ("jupyterlab", "code-server", "")

BACKGROUND = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"}
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}

CHANNELS = b"/api/kernels/015d4b41-df92-4620-b4f0-740c5d0cd8cb/channels"
TERMINAL = b"/terminals/websocket/1"
REMOTE = b"/stable-53c2f3253bcf32886706fc023e794bbeb253c90f"


def head(method: str, target: str, fields: dict[str, str]) -> RequestHead:
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: h",
        *(f"{name}: {value}" for name, value in fields.items()),
    ]
    return RequestHeadReader().read("\r\n".join([*lines, "", ""]).encode())


def is_activity_request(ide: str, method: str, target: str, fields: dict[str, str] | None = None) -> bool:
    """Classify a request; the target has no prefix of the proxy."""
    request = head(method, f"/w/some-id{target}", BACKGROUND if fields is None else fields)
    return rules_for(ide).is_activity_request(target.partition("?")[0].encode(), request)


def is_activity_message(
    ide: str, path: bytes, payload: bytes, opcode: int = BINARY, visible: int = 1024
) -> bool:
    return rules_for(ide).messages_at(path).is_activity(opcode, len(payload), payload[:visible])


def kernel_message(channel: bytes, kind: str, content: str) -> bytes:
    """Return a message in the protocol v1.kernel.websocket.jupyter.org: offsets, then the parts."""
    header = json.dumps(
        {
            "date": "2026-11-16T08:56:34.456Z",
            "msg_id": "245912dc-dfa3-4056-9752-4192f8033c5e",
            "msg_type": kind,
            "session": "86e83345-ba07-4517-961f-5d1a2f1c83f5",
            "username": "",
            "version": "5.2",
        },
        separators=(",", ":"),
    )
    parts = (channel, header.encode(), b"{}", b"{}", content.encode())
    offsets = [56 + sum(map(len, parts[:index])) for index in range(len(parts) + 1)]
    return b"".join(number.to_bytes(8, "little") for number in (len(offsets), *offsets)) + b"".join(parts)


def remote_message(body: bytes) -> bytes:
    """Return a regular message of VS Code: kind, number, acknowledged number, size, body."""
    return b"\x01\0\0\4\x6b\0\0\3\x42" + len(body).to_bytes(4, "big") + body


def extension_call(name: str, arguments: str, kind: bytes = b"\x01") -> bytes:
    """Return a call to the extension host: kind, number, receiver, method, arguments."""
    encoded = len(arguments).to_bytes(4, "big") + arguments.encode()
    return remote_message(kind + b"\0\0\0\xb4f" + bytes([len(name)]) + name.encode() + encoded)


def terminal_input(data: bytes) -> bytes:
    call = b"\x04\x04\x06d\x06\xc9\x0e\x01\x0eremoteterminal\x01\x06$input\x04\x02\x06\x01\x01"
    return remote_message(call + bytes([len(data)]) + data)


def model_change(reason: str, *, is_dirty: str) -> bytes:
    uri = '{"$mid":1,"fsPath":"/home/a.txt","external":"vscode-remote://h/home/a.txt","path":"/home/a.txt"}'
    change = '{"range":{"startLineNumber":2},"rangeLength":0,"text":"w","rangeOffset":6}'
    event = f'{{"changes":[{change}],"isFlush":false,"detailedReason":{{{reason}}}}}'
    return extension_call("$acceptModelChanged", f"[{uri},{event},{is_dirty}]")


ACKNOWLEDGEMENT = remote_message(b"\x05\0\0\2\x4b")
KEEP_ALIVE = b"\x09\0\0\0\0\0\0\5\xa0\0\0\0\0"
SCROLLED = extension_call("$acceptEditorPropertiesChanged", '["vs.editor.ICodeEditor:1",{"selections":null}]')

IDLE_JUPYTERLAB_REQUESTS = (
    ("GET", "/api/kernels?1794819176561"),
    ("GET", "/api/sessions?1794819176561"),
    ("GET", "/api/terminals?1794819176561"),
    ("GET", "/api/me?1794819176561"),
    ("GET", "/api/kernelspecs?1794819176561"),
    ("GET", "/api/contents?content=1&hash=0&1794819176561"),
    ("GET", "/api/contents/folder?content=1&hash=0&1794819494491"),
    ("GET", "/api/contents/a.py?content=0&hash=1&contentProviderId=undefined&1794819584425"),
    ("GET", "/api/contents/a.py/checkpoints?1794819584459"),
    ("GET", "/lab/api/workspaces?1794819176561"),
    ("PUT", "/lab/api/workspaces/default?1794819176561"),
    ("GET", "/static/lab/jlab_core.94a7f1.js.map"),
)
ACTIVE_JUPYTERLAB_REQUESTS = (
    ("PUT", "/api/contents/a.py?1794819584440"),
    ("POST", "/api/contents/a.py/checkpoints?1794819464427"),
    ("POST", "/api/contents?1794819393447"),
    ("POST", "/api/sessions?1794819393704"),
    ("POST", "/api/terminals?1794819432524"),
    ("POST", "/api/kernels/015d4b41/interrupt?1794819432524"),
    ("GET", "/api/contents/a.py?type=file&content=1&hash=1&format=text&1794819455670"),
    ("GET", "/api/contents/a.ipynb?type=notebook&content=1&hash=1&1794819393574"),
)

IDLE_JUPYTERLAB_MESSAGES = (
    (CHANNELS, kernel_message(b"shell", "kernel_info_request", "{}")),
    (CHANNELS, kernel_message(b"shell", "history_request", '{"hist_access_type":"tail","n":10}')),
    (CHANNELS, kernel_message(b"shell", "comm_info_request", "{}")),
    (CHANNELS, kernel_message(b"control", "debug_request", '{"seq":0,"command":"debugInfo"}')),
    (TERMINAL, b'["set_size",52,134,803,970]'),
    (TERMINAL, b'["stdin","\\u001b[24;1R"]'),
    (TERMINAL, b'["stdin","\\u001b[?1;2c"]'),
    (TERMINAL, b'["stdin","\\u001b[O"]'),
    (TERMINAL, b'["stdin","\\u001b]11;rgb:ffff/ffff/ffff\\u001b\\\\"]'),
    (b"/api/events/subscribe", b"x" * 100),
)
ACTIVE_JUPYTERLAB_MESSAGES = (
    (CHANNELS, kernel_message(b"shell", "execute_request", '{"silent":false,"code":"print(1+1)"}')),
    (CHANNELS, kernel_message(b"shell", "complete_request", '{"code":"import o","cursor_pos":8}')),
    (CHANNELS, kernel_message(b"shell", "comm_msg", '{"comm_id":"x","data":{}}')),
    (CHANNELS, kernel_message(b"stdin", "input_reply", '{"value":"yes"}')),
    (CHANNELS, kernel_message(b"control", "debug_request", '{"seq":7,"command":"next"}')),
    (TERMINAL, b'["stdin","l"]'),
    (TERMINAL, b'["stdin","\\r"]'),
    (TERMINAL, b'["stdin","\\u001b[A"]'),
    (TERMINAL, b'["stdin","\\u001b[15~"]'),
)

IDLE_CODE_SERVER_MESSAGES = (
    KEEP_ALIVE,
    KEEP_ALIVE + extension_call("$onDidChangeWindowFocus", "[true]"),
    ACKNOWLEDGEMENT * 3,
    b'\x02\0\0\0\0\0\0\0\0\0\0\0\x5b{"type":"auth","auth":"00000000000000000000"}',
    extension_call("$onFileEvent", '[{"created":[],"changed":[{"path":"/home/vscode.lock"}],"deleted":[]}]'),
    extension_call("$shellExecutionData", r'[1,"\u001b]633;C\u0007"]'),
    extension_call("$acceptTerminalInteraction", "[1]"),
    extension_call("$acceptDocumentsAndEditorsDelta", '[{"addedDocuments":[]}]'),
    extension_call("$provideCodeLenses", '[46,{"$mid":1}]', b"\x02"),
    remote_message(b"\x04\x04\x06d\x06\x92\x0b\x01\ttelemetry\x01\x04ping\0"),
    remote_message(b"\x04\x04\x06d\x06\xb1\x0b\x01\x10remoteFilesystem\x01\x04stat\x04\x01"),
    remote_message(b"\x04\x04\x06d\x06\xb1\x0b\x01\x0eremoteterminal\x01\x07$resize\x04\x05"),
    terminal_input(b"\x1b[3;1R"),
    terminal_input(b"\x1b[>0;276;0c"),
    model_change('"source":"reloadFromDisk"', is_dirty="false") + SCROLLED,
)
ACTIVE_CODE_SERVER_MESSAGES = (
    extension_call("$onDidChangeWindowActive", "[true]"),
    extension_call("$acceptTabOperation", '[{"groupId":0,"index":0}]'),
    extension_call("$acceptDirtyStateChanged", '[{"$mid":1},true]'),
    extension_call("$participateInSave", '[{"$mid":1},1]'),
    SCROLLED,
    ACKNOWLEDGEMENT * 2 + SCROLLED,
    model_change('"source":"cursor","kind":"type","detailedSource":"keyboard"', is_dirty="true"),
    terminal_input(b"l"),
    terminal_input(b"\r"),
    terminal_input(b"\x1b[A"),
)


@pytest.mark.parametrize(("method", "target"), IDLE_JUPYTERLAB_REQUESTS)
def test_requests_of_an_untouched_jupyterlab_are_not_activity(method: str, target: str) -> None:
    assert not is_activity_request(JUPYTERLAB, method, target)


@pytest.mark.parametrize(("method", "target"), ACTIVE_JUPYTERLAB_REQUESTS)
def test_requests_of_a_person_in_jupyterlab_are_activity(method: str, target: str) -> None:
    assert is_activity_request(JUPYTERLAB, method, target)


@pytest.mark.parametrize(("path", "payload"), IDLE_JUPYTERLAB_MESSAGES)
def test_messages_of_an_untouched_jupyterlab_are_not_activity(path: bytes, payload: bytes) -> None:
    assert not is_activity_message(JUPYTERLAB, path, payload)


@pytest.mark.parametrize(("path", "payload"), ACTIVE_JUPYTERLAB_MESSAGES)
def test_messages_of_a_person_in_jupyterlab_are_activity(path: bytes, payload: bytes) -> None:
    assert is_activity_message(JUPYTERLAB, path, payload)


def test_a_kernel_message_with_too_little_visible_is_activity() -> None:
    payload = kernel_message(b"shell", "kernel_info_request", "{}")
    assert is_activity_message(JUPYTERLAB, CHANNELS, payload, visible=64)


@pytest.mark.parametrize("payload", IDLE_CODE_SERVER_MESSAGES)
def test_messages_of_an_untouched_code_server_are_not_activity(payload: bytes) -> None:
    assert not is_activity_message(CODE_SERVER, REMOTE, payload)


@pytest.mark.parametrize("payload", ACTIVE_CODE_SERVER_MESSAGES)
def test_messages_of_a_person_in_code_server_are_activity(payload: bytes) -> None:
    assert is_activity_message(CODE_SERVER, REMOTE, payload)


@pytest.mark.parametrize("ide", IDES)
def test_opening_a_page_is_activity(ide: str) -> None:
    assert is_activity_request(ide, "GET", "/", NAVIGATION)
    assert is_activity_request(ide, "GET", "/lab/tree/a.ipynb?reset", {"Accept": "text/html,*/*"})


@pytest.mark.parametrize("ide", IDES)
@pytest.mark.parametrize(
    "fields",
    [
        NAVIGATION | {"Sec-Fetch-Dest": "iframe"},
        NAVIGATION | {"Sec-Purpose": "prefetch"},
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Mode": "same-origin", "Sec-Fetch-Dest": "serviceworker"},
        {"Connection": "Upgrade", "Upgrade": "websocket"},
        {"Accept": "application/json"},
    ],
)
def test_fetches_of_pages_and_programs_are_not_activity(ide: str, fields: dict[str, str]) -> None:
    assert not is_activity_request(ide, "GET", "/anything", fields)


@pytest.mark.parametrize("ide", IDES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_requests_that_change_something_are_activity(ide: str, method: str) -> None:
    assert is_activity_request(ide, method, "/proxy/5000/items")


@pytest.mark.parametrize("ide", IDES)
@pytest.mark.parametrize("opcode", [CONTINUATION, CLOSE, PING, PONG])
@pytest.mark.parametrize("path", [CHANNELS, TERMINAL, REMOTE, b"/other"])
def test_frames_that_start_no_message_are_not_activity(ide: str, opcode: int, path: bytes) -> None:
    assert not is_activity_message(ide, path, b"x" * 100, opcode)


@pytest.mark.parametrize(
    ("ide", "path"), [(UNKNOWN, REMOTE), (JUPYTERLAB, b"/ws"), (CODE_SERVER, b"/proxy/1/ws")]
)
def test_on_unknown_sockets_only_long_messages_are_activity(ide: str, path: bytes) -> None:
    keep_alive = b'{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}'
    assert not is_activity_message(ide, path, keep_alive, TEXT)
    assert is_activity_message(ide, path, b"x" * 65, TEXT)
