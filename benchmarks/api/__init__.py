"""Requests to the API compared with JupyterHub, and live events."""
