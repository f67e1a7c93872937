"""nginx as the upstream and as contestants."""

import getpass
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from benchmarks.api.load_generator import Target
from benchmarks.peers import Unavailable
from benchmarks.proxy.testbed import (
    OTHER_CORES,
    Contestant,
    Testbed,
    contestant,
    free_port,
    server,
)
from benchmarks.proxy.upstream import LARGE, SIZES, SMALL

# Temporary files stay in the current directory, not in Debian's; connections are kept open.
CONFIGURATION = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
user {user};
pid {name}.pid;
error_log {name}.error error;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    client_body_temp_path {name}-body;
    proxy_temp_path {name}-proxy;
    fastcgi_temp_path {name}-fastcgi;
    uwsgi_temp_path {name}-uwsgi;
    scgi_temp_path {name}-scgi;
    default_type text/plain;
    open_file_cache max=16;
    {content}
}}
"""
UPSTREAM = """
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        listen unix:{socket} backlog=4096;
        location = /{small} {{ return 200 "{text}"; }}
        location = {prefix}{small} {{ return 200 "{text}"; }}
        location = /{large} {{ alias {large_file}; }}
        location = {prefix}{large} {{ alias {large_file}; }}
        location / {{ return 200 "ok"; }}
    }}
"""
# auth_request calls a service over a connection, as usual; this service always allows.
PROXY = """
    server {{
        listen 127.0.0.1:{auth_port} backlog=4096;
        location / {{ return 204; }}
    }}
    map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
    upstream pages {{ server 127.0.0.1:{pages_port}; keepalive 512; keepalive_requests 100000000; }}
    upstream echo {{ server 127.0.0.1:{echo_port}; keepalive 512; keepalive_requests 100000000; }}
    upstream auth {{ server 127.0.0.1:{auth_port}; keepalive 512; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header Connection $connection_upgrade;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_read_timeout 900s;
        {options}
        location {prefix} {{ proxy_pass http://pages; }}
        location / {{ proxy_pass http://echo; }}
        location = /auth {{
            internal;
            auth_request off;
            proxy_pass http://auth;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Original-URI $request_uri;
        }}
    }}
"""
AUTH = "auth_request /auth;"
BIG_BUFFERS = "proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;"


def installed() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@asynccontextmanager
async def nginx_upstream(testbed: Testbed) -> AsyncIterator[None]:
    """Serve pages."""
    large_file = testbed.directory / LARGE
    large_file.write_bytes(b"x" * SIZES[LARGE])
    content = UPSTREAM.format(
        port=testbed.pages_port,
        socket=testbed.socket(testbed.pages_port),
        prefix=testbed.pages_prefix,
        small=SMALL,
        text="x" * SIZES[SMALL],
        large=LARGE,
        large_file=large_file,
    )
    command = _configured(testbed.directory, "upstream", content)
    ready = Target(testbed.pages_port, f"/{SMALL}", {})
    async with server(command, os.environ, testbed.directory / "upstream.log", ready, OTHER_CORES):
        yield


@asynccontextmanager
async def nginx(testbed: Testbed, name: str = "nginx", options: str = "") -> AsyncIterator[Contestant]:
    port = free_port()
    content = PROXY.format(
        port=port,
        pages_port=testbed.pages_port,
        echo_port=testbed.echo_port,
        auth_port=free_port(),
        prefix=testbed.pages_prefix,
        options=options,
    )
    command = _configured(testbed.directory, name, content)
    async with contestant(
        testbed, name, command, port=port, environment=os.environ, version=_version(command[0])
    ) as ready:
        yield ready


def nginx_auth(testbed: Testbed) -> AbstractAsyncContextManager[Contestant]:
    return nginx(testbed, "nginx-auth", AUTH)


def nginx_64k(testbed: Testbed) -> AbstractAsyncContextManager[Contestant]:
    return nginx(testbed, "nginx-64k", BIG_BUFFERS)


def _configured(directory: Path, name: str, content: str) -> tuple[str, ...]:
    """Write the configuration; return the command."""
    program = installed()
    if program is None:
        raise Unavailable("nginx is missing: apt-get install nginx-light")
    configuration = directory / f"{name}.conf"
    configuration.write_text(CONFIGURATION.format(user=getpass.getuser(), name=name, content=content))
    return program, "-p", str(directory), "-e", f"{name}.error", "-c", str(configuration)


def _version(program: str) -> str:
    done = subprocess.run((program, "-v"), check=True, capture_output=True, text=True)  # noqa: S603
    return done.stderr.strip().rpartition("/")[2]
