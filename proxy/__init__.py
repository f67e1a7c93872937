"""The proxy: it serves workspaces and the API on one port."""
