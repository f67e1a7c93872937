"""What a terminal in a local workspace reaches: the outside by its policy, and none of our servers."""

import asyncio
import http.client
import json
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from wsgiref.simple_server import make_server
from zipfile import ZipFile

import psutil
import pytest

from codehub.adapters.local.ides import Ide
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressMode, EgressPolicy
from codehub.instance_egress import EgressAccess
from codehub.ports import InstanceRequest
from codehub.unix_sockets import connectable
from testkit.internet import VICTIM_PORT, WEB_PORT, Internet
from testkit.needs import need_bubblewrap, need_program
from testkit.processes import kill, spawn
from testkit.waiting import until
from tests.egress.clients import KEY, choose, new_workspace
from tests.egress.conftest import RunningGateway

PROGRAM = Path(__file__).with_name("terminal_ide.py")
HTTPS_PORT = 443
SSH_PORT = 22
SITE = "https://site.example"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("terminal")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


@dataclass(frozen=True)
class Terminal:
    """A terminal in a running workspace."""

    socket: str
    workspace_id: WorkspaceId
    home: Path

    async def run(self, command: str) -> tuple[int, str]:
        return await asyncio.to_thread(self._run, command)

    async def output_of(self, command: str) -> str:
        code, output = await self.run(command)
        assert code == 0, output
        return output

    def _run(self, command: str) -> tuple[int, str]:
        with connectable(self.socket) as path:
            connection = UnixConnection(path)
            connection.request("POST", "/run", json.dumps(["bash", "-c", command]))
            result = json.loads(connection.getresponse().read())
            connection.close()
        return result["code"], result["output"]


@pytest.fixture(scope="module")
async def terminal(
    gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Terminal]:
    need_bubblewrap()
    root = LocalRoot.at(tmp_path_factory.mktemp("local"))
    root.prepare()
    ide = Ide(
        command=(sys.executable, "-I", "-S", str(PROGRAM), "{socket}"),
        health_path="/health",
        keep_prefix=False,
        visible=(Path(sys.prefix), Path(sys.base_prefix), PROGRAM),
    )
    instances = LocalInstances(root.path, ides={"terminal": ide}, egress=EgressAccess(gateway.socket, KEY))
    volumes = LocalVolumes(root.path)
    workspace_id = await new_workspace(gateway.database)
    await volumes.provision(workspace_id)
    await instances.start(InstanceRequest(workspace_id, "terminal"), lambda _: None)
    try:
        upstream = await instances.find_upstream(workspace_id)
        assert upstream is not None
        yield Terminal(upstream.host, workspace_id, root.volume(workspace_id))
    finally:
        await instances.stop(workspace_id)


@pytest.fixture(scope="module")
def site(internet: Internet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Serve a directory over https outside, with a certificate of its own; return the directory."""
    directory = tmp_path_factory.mktemp("site")
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site.example"
    names = ("-addext", "subjectAltName=DNS:site.example,DNS:other.example")
    files = ("-keyout", str(directory / "key.pem"), "-out", str(directory / "ca.pem"))
    openssl = (need_program("openssl"), *options.split(), *names, *files)
    subprocess.run(openssl, check=True, capture_output=True)
    server = Path(__file__).with_name("https_files.py")
    command = internet.outside_command((sys.executable, server, directory, str(HTTPS_PORT)))
    process = spawn(command, directory / "log")
    try:
        while "ready" not in (directory / "log").read_text():
            assert process.poll() is None, (directory / "log").read_text()
        yield directory
    finally:
        kill(process)


@contextmanager
def host_server() -> Iterator[int]:
    """Listen on every address of this host."""

    def respond(_environ: object, start_response: object) -> list[bytes]:
        start_response("200 OK", [])  # type: ignore[operator]
        return [b"victim"]

    with make_server("0.0.0.0", 0, respond) as server:  # noqa: S104
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def host_addresses() -> list[str]:
    found = [each.address for addresses in psutil.net_if_addrs().values() for each in addresses]
    return sorted({each for each in found if each.count(".") == 3})


async def test_the_host_and_its_networks_are_out_of_reach(
    terminal: Terminal, gateway: RunningGateway
) -> None:
    with host_server() as port:
        for address in host_addresses():
            connection = http.client.HTTPConnection(address, port, timeout=10)
            await asyncio.to_thread(connection.request, "GET", "/")
            assert (await asyncio.to_thread(connection.getresponse)).read() == b"victim"
            connection.close()
        targets = [f"http://{address}:{port}/" for address in (*host_addresses(), "localhost", "127.1")]
        for options in ("--noproxy '*'", "", "--noproxy none", "--proxy socks5h://127.0.0.1:3128"):
            for url in (*targets, "http://169.254.169.254/latest/", f"http://10.9.8.7:{VICTIM_PORT}/"):
                _, output = await terminal.run(f"curl -s -m 20 {options} {url}")
                assert "victim" not in output, (options, url)


async def test_there_is_no_way_around_the_relay(terminal: Terminal) -> None:
    interfaces = await terminal.output_of("ls /sys/class/net 2>/dev/null; cat /proc/net/dev")
    assert [line.split(":")[0].strip() for line in interfaces.splitlines() if ":" in line] == ["lo"]
    code, _ = await terminal.run("curl -s -m 10 --noproxy '*' http://198.51.100.2/")
    assert code != 0


async def test_no_credentials_are_in_the_environment_of_programs(terminal: Terminal) -> None:
    environment = await terminal.output_of("env")
    assert "CODEHUB-EGRESS" not in environment
    assert "CODEHUB_AGENT" not in environment
    assert environment.count("=http://127.0.0.1:3128") == 8


async def test_curl_reaches_an_allowed_name_and_reads_why_others_are_refused(
    terminal: Terminal, gateway: RunningGateway
) -> None:
    assert "outside 198.51.100.2" in await terminal.output_of(f"curl -sS http://site.example:{WEB_PORT}/")
    assert "private, local or reserved" in await terminal.output_of("curl -s http://169.254.169.254/latest/")


async def test_pip_installs_over_https(terminal: Terminal, site: Path) -> None:
    wheel = site / "simple" / "tiny" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    build_wheel(wheel)
    python = shlex.quote(str(Path(sys.base_prefix) / "bin" / "python3"))
    shutil.copy(site / "ca.pem", terminal.home / "ca.pem")
    await terminal.output_of(
        f"{python} -m pip install --cert ~/ca.pem --index-url {SITE}/simple --target ~/packages "
        "--disable-pip-version-check --no-cache-dir tiny"
    )
    assert (terminal.home / "packages" / "tiny.py").exists()


async def test_npm_installs_over_https(terminal: Terminal, site: Path) -> None:
    need_program("npm")
    package = site / "package"
    package.mkdir(exist_ok=True)
    (package / "package.json").write_text('{"name": "tiny", "version": "1.0.0"}')
    with tarfile.open(site / "tiny-1.0.0.tgz", "w:gz") as archive:
        archive.add(package, "package")
    shutil.copy(site / "ca.pem", terminal.home / "ca.pem")
    await terminal.output_of(
        f"mkdir -p ~/npm && cd ~/npm && "
        f"npm install --cafile ~/ca.pem --no-audit --no-fund {SITE}/tiny-1.0.0.tgz"
    )
    assert (terminal.home / "npm" / "node_modules" / "tiny" / "package.json").exists()


async def test_git_clones_over_https(terminal: Terminal, site: Path) -> None:
    need_program("git")
    make_repository(site / "repository.git")
    shutil.copy(site / "ca.pem", terminal.home / "ca.pem")
    await terminal.output_of(f"git -c http.sslCAInfo=$HOME/ca.pem clone {SITE}/repository.git ~/over-https")
    assert (terminal.home / "over-https" / "README").read_text() == "hello\n"


async def test_git_clones_over_ssh(terminal: Terminal, site: Path, internet: Internet) -> None:
    """The outside server only echoes SSH's first line, which is enough to show that ssh gets there."""
    need_program("ssh")
    _, output = await terminal.run(
        f"GIT_SSH_COMMAND='ssh -v -o StrictHostKeyChecking=no' timeout 10 "
        f"git clone ssh://git@site.example:{WEB_PORT}/x ~/x"
    )
    assert "Executing proxy command: exec" in output
    # The web server echoes everything that is not HTTP, so this line has made the round trip.
    assert "remote software version OpenSSH" in output


async def test_ssh_says_why_a_host_is_refused(terminal: Terminal) -> None:
    need_program("ssh")
    code, output = await terminal.run("ssh -o StrictHostKeyChecking=no git@10.9.8.7")
    assert code != 0
    assert "private, local or reserved address" in output


async def test_a_policy_applies_to_a_running_workspace(terminal: Terminal, gateway: RunningGateway) -> None:
    fetch = f"curl -sS -m 20 http://site.example:{WEB_PORT}/"
    assert "outside" in await terminal.output_of(fetch)
    await choose(gateway.database, terminal.workspace_id, EgressPolicy(EgressMode.NONE))

    async def is_closed() -> bool:
        return "network policy of this workspace" in await terminal.output_of(fetch)

    await until(is_closed, "the policy is in force inside")
    await choose(gateway.database, terminal.workspace_id, None)

    async def is_open() -> bool:
        return "outside" in await terminal.output_of(fetch)

    await until(is_open, "the policy is lifted inside")


def build_wheel(path: Path) -> None:
    files = {
        "tiny.py": "",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": "tiny.py,,\ntiny-1.0.dist-info/RECORD,,\n",
    }
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def make_repository(path: Path) -> None:
    work = path.with_suffix(".work")
    script = (
        f"git init -q {work} && cd {work} && echo hello > README && git add README && "
        f"git -c user.name=a -c user.email=a@example.org commit -q -m first && "
        f"git clone -q --bare {work} {path} && cd {path} && git update-server-info"
    )
    subprocess.run(("bash", "-c", script), check=True, capture_output=True)  # noqa: S607
