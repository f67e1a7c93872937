"""What somebody with a terminal in a local workspace tries; runs inside as a program of its own.

`sandbox_attempts.py TARGETS` prints, as JSON, the attempts that succeeded.
"""

import ctypes
import json
import os
import platform
import socket
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

Targets = dict[str, str]


def read_other_home(targets: Targets) -> bool:
    return bool(Path(targets["home"], "diary").read_text())


def write_other_home(targets: Targets) -> bool:
    return Path(targets["home"], "planted").write_text("x") > 0


def read_credentials(targets: Targets) -> bool:
    return bool(Path(targets["credentials"]).read_text())


def read_own_secret(targets: Targets) -> bool:
    return bool(Path(targets["state"]).read_text())


def read_password_hashes(_: Targets) -> bool:
    return bool(Path("/etc/shadow").read_text())


def see_other_processes(targets: Targets) -> bool:
    return Path("/proc", targets["pid"], "cmdline").exists()


def read_their_environment(targets: Targets) -> bool:
    return targets["secret"].encode() in Path("/proc", targets["pid"], "environ").read_bytes()


def enter_their_root(targets: Targets) -> bool:
    return bool(list(Path("/proc", targets["pid"], "root").iterdir()))


def signal_other_processes(targets: Targets) -> bool:
    os.kill(int(targets["pid"]), 0)
    # Without a namespace of its own, the number means the same process.
    return read_their_environment(targets)


def connect_to_other_socket(targets: Targets) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(targets["socket"])
        return True


def connect_to_abstract_socket(targets: Targets) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"\0{targets['abstract']}")
        return True


def connect_to_host_loopback(targets: Targets) -> bool:
    with socket.create_connection(("127.0.0.1", int(targets["port"])), timeout=5):
        return True


def reach_another_network(_: Targets) -> bool:
    """Without sending anything: connecting a datagram socket only looks for a route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("192.0.2.1", 9))
        return True


def send_raw_packets(_: Targets) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return True


def use_device_node(targets: Targets) -> bool:
    """With a node of the disk, everything on the disk could be read; /dev/zero shows the same."""
    node = Path(targets["scratch"], "device")
    node.unlink(missing_ok=True)
    os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    with node.open("rb") as device:
        return len(device.read(1)) > 0


def mount_file_system(targets: Targets) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    directory = Path(targets["scratch"], "mounted")
    directory.mkdir(exist_ok=True)
    if libc.mount(b"tmpfs", str(directory).encode(), b"tmpfs", 0, None) != 0:
        return False
    libc.umount2(str(directory).encode(), 2)
    return True


def new_user_namespace(_: Targets) -> bool:
    """Become root of a namespace of one's own, which opens much of the kernel."""
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(0x10000000) != 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def gain_privileges(_: Targets) -> bool:
    """Set-user-ID programs such as su work."""
    return "NoNewPrivs:\t0" in Path("/proc/self/status").read_text()


def change_system(_: Targets) -> bool:
    Path("/usr/planted-by-a-test").touch()
    Path("/usr/planted-by-a-test").unlink()
    return True


def change_kernel_settings(_: Targets) -> bool:
    return os.access("/proc/sys/kernel/core_pattern", os.W_OK)


def outlive_the_instance(targets: Targets) -> bool:
    """The lock says whether the instance runs; whoever holds or releases it can lie about that."""
    open_files = (os.path.realpath(each) for each in Path("/proc/self/fd").iterdir())
    return any(each.endswith(targets["lock"]) for each in open_files)


def use_keyring(_: Targets) -> bool:
    """Keys belong to a user of the machine, not to the namespaces of a workspace."""
    return system_call("add_key", b"user", b"codehub-test", b"x", 1, -2) >= 0


def make_io_uring(_: Targets) -> bool:
    """It makes system calls that no filter sees."""
    return system_call("io_uring_setup", 1, ctypes.create_string_buffer(120)) >= 0


def handle_page_faults(_: Targets) -> bool:
    return system_call("userfaultfd", 1) >= 0


def load_kernel_program(_: Targets) -> bool:
    """Make a BPF map: a hash of one entry of four bytes."""
    return system_call("bpf", 0, struct.pack("5I", 1, 4, 4, 1, 0), 20) >= 0


def measure_the_kernel(_: Targets) -> bool:
    """Count context switches on a processor, of all processes."""
    attributes = struct.pack("IIQ", 1, 112, 3).ljust(112, b"\0")
    return system_call("perf_event_open", attributes, -1, 0, -1, 0) >= 0


def open_vsock(_: Targets) -> bool:
    """Network namespaces do not hold these sockets; they lead to the host of a virtual machine."""
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        return True


def type_into_terminal(_: Targets) -> bool:
    """Put input into a terminal, as if its user had typed it. The kernel reads 32 bits of the request."""
    first, second = os.openpty()
    with os.fdopen(first), os.fdopen(second):
        return any(system_call("ioctl", second, request, b"x") == 0 for request in (0x5412, 0x1_0000_5412))


# Of x86-64 and aarch64.
CALLS = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
}


def system_call(name: str, *arguments: object) -> int:
    number = CALLS[name][platform.machine() == "aarch64"]
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = ctypes.CDLL(None).syscall(ctypes.c_long(number), *words)
    return result


ATTEMPTS: dict[str, Callable[[Targets], bool]] = {
    "read another home": read_other_home,
    "write to another home": write_other_home,
    "read CodeHub's credentials": read_credentials,
    "read the record of its own instance": read_own_secret,
    "read the system's password hashes": read_password_hashes,
    "see other processes": see_other_processes,
    "read their environment": read_their_environment,
    "enter their file system": enter_their_root,
    "signal other processes": signal_other_processes,
    "connect to a neighbor's socket": connect_to_other_socket,
    "connect to an abstract socket of the host": connect_to_abstract_socket,
    "connect to the host's loopback": connect_to_host_loopback,
    "find a route to another network": reach_another_network,
    "send raw packets": send_raw_packets,
    "make and use a device node": use_device_node,
    "mount a file system": mount_file_system,
    "make a user namespace": new_user_namespace,
    "gain privileges through set-user-ID programs": gain_privileges,
    "change the system's programs": change_system,
    "change kernel settings": change_kernel_settings,
    "use the kernel's keyring": use_keyring,
    "make an io_uring": make_io_uring,
    "handle page faults of the kernel": handle_page_faults,
    "load programs into the kernel": load_kernel_program,
    "measure all processes of the machine": measure_the_kernel,
    "open a socket to the host of a virtual machine": open_vsock,
    "type into a terminal": type_into_terminal,
    "inherit the lock of the instance": outlive_the_instance,
}


def succeeds(attempt: Callable[[Targets], bool], targets: Targets) -> bool:
    try:
        return attempt(targets)
    except OSError:
        return False


if __name__ == "__main__":
    known = json.loads(sys.argv[1])
    print(json.dumps([name for name, attempt in ATTEMPTS.items() if succeeds(attempt, known)]))  # noqa: T201
