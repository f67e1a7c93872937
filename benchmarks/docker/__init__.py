"""Starting and stopping containers compared with bare Docker and JupyterHub."""
