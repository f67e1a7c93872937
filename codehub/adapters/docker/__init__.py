"""Workspaces as Docker containers and volumes."""
