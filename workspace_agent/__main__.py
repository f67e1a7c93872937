"""`workspace_agent COMMAND…`: run the IDE; `{socket}` in its command becomes the path of its socket."""

import os
import sys

from workspace_agent.ide import run_ide
from workspace_agent.limits import set_limits
from workspace_agent.options import socket_path, take_options
from workspace_agent.services import start_services


def main(command: list[str]) -> int:
    environment = dict(os.environ)
    options = take_options(environment)
    set_limits(options.limits)
    start_services(options.services)
    if options.ide_socket:
        socket = socket_path(options.sockets, options.ide_socket)
        command = [word.replace("{socket}", socket) for word in command]
    return run_ide(command, environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
