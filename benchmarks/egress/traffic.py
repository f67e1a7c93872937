"""Servers and clients of the measurement, as programs in the two namespaces. Standard library only."""

import socket
import sys
import threading
import time

CHUNK = bytes(1 << 18)
MEGABYTE = 1_000_000
WORKERS = 8


def serve(port: int) -> None:
    """Send as many bytes as the first line of a connection asks for."""
    listening = socket.create_server(("", port), backlog=256)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_send, args=(connection,), daemon=True).start()


def _send(connection: socket.socket) -> None:
    with connection:
        wanted = int(connection.makefile("rb").readline())
        while wanted > 0:
            wanted -= connection.send(CHUNK[:wanted])


def connect(way: str, preamble: str, address: str, port: int) -> socket.socket:
    """Connect directly, or with CONNECT through the gateway whose socket is `way`."""
    if way == "direct":
        return socket.create_connection((address, port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(way)
    connection.sendall(f"{preamble}\nCONNECT {address}:{port} HTTP/1.1\r\n\r\n".encode())
    response = b""
    while not response.endswith(b"\r\n\r\n"):
        response += connection.recv(1)
    if b" 200 " not in response:
        raise ConnectionError(response.decode())
    return connection


def download(connection: socket.socket, size: int) -> None:
    connection.sendall(f"{size}\n".encode())
    received, buffer = 0, bytearray(1 << 18)
    while count := connection.recv_into(buffer):
        received += count
    if received != size:
        raise ConnectionError(f"{received} of {size} bytes")


def measure_throughput(arguments: tuple[str, str, str, int], megabytes: int) -> float:
    began = time.perf_counter()
    with connect(*arguments) as connection:
        download(connection, megabytes * MEGABYTE)
    return megabytes / (time.perf_counter() - began)


def measure_connections(arguments: tuple[str, str, str, int], count: int) -> float:
    def work() -> None:
        for _ in range(count // WORKERS):
            with connect(*arguments) as connection:
                download(connection, 100)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count // WORKERS * WORKERS / (time.perf_counter() - began)


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "serve":
        serve(int(rest[0]))
    else:
        *target, text, amount = rest
        way = (target[0], target[1], target[2], int(text))
        measure = measure_throughput if role == "throughput" else measure_connections
        sys.stdout.write(f"{measure(way, int(amount)):.1f}\n")
