"""Starting and stopping Pods compared with the bare API, kubectl and JupyterHub."""
