"""The API: requests and event streams, next to JupyterHub."""
