"""Tests of the proxy's upper half, on real PostgreSQL and Redis, over real sockets."""
