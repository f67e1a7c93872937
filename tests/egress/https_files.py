"""Serve a directory over https with the certificate in it. Standard library only."""

import ssl
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

if __name__ == "__main__":
    directory, port = sys.argv[1:]
    server = ThreadingHTTPServer(
        ("0.0.0.0", int(port)),  # noqa: S104
        partial(SimpleHTTPRequestHandler, directory=directory),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{directory}/ca.pem", f"{directory}/key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()
