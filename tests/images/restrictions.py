"""The options of `docker run` that match how the Docker backend runs containers."""

RESTRICTED = (
    *("--read-only", "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777"),  # noqa: S108 (the container's own)
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--init", "--pids-limit", "1024", "--memory", "2g", "--memory-swap", "2g"),
)
