"""Workspaces as Pods and PersistentVolumeClaims."""
