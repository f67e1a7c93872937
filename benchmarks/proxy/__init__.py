"""The proxy, next to nginx and JupyterHub's proxy."""
