"""The transport of the proxy, over raw sockets."""
