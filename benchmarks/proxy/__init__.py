"""The proxy compared with nginx, Caddy, Traefik and JupyterHub's proxy."""
