"""Starting and stopping Docker workspaces, next to bare Docker and JupyterHub."""
