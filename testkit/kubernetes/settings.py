"""The settings of a CodeHub whose workspaces are Pods with a tiny IDE, on the test cluster."""

import json
from pathlib import Path
from uuid import uuid4

from codehub.adapters.kubernetes.options import MIB
from testkit.docker_engine import JOB_IMAGE, docker
from testkit.fakes import IMAGE
from testkit.kubernetes.provisioner import DEFAULT_CLASS


def backend_settings(kubeconfig: Path, namespace: str, image: str = IMAGE) -> dict[str, str]:
    """Return the settings of a new project in this namespace, as environment variables."""
    labels = json.loads(docker("inspect", "--format", "{{json .Config.Labels}}", image))
    cluster = {
        "KUBECONFIG": str(kubeconfig),
        "NAMESPACE": namespace,
        "PROJECT": f"test-{uuid4()}",
        "STORAGE_CLASS": DEFAULT_CLASS,
        "VOLUME_BYTES": str(100 * MIB),
        # Many Pods share the memory of one machine.
        "MEMORY_BYTES": str(256 * MIB),
        "REQUESTED_MEMORY_BYTES": str(32 * MIB),
        "REQUESTED_CPUS": "0.01",
        "IMAGE_LABELS": json.dumps({image: labels}),
        "JOB_IMAGE": JOB_IMAGE,
        "START_SECONDS": "120",
        "STOP_SECONDS": "5",
    }
    return {
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "k8s",
        "CODEHUB_WORKSPACES_STORAGE_BACKEND": "pvc",
        "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": image,
        **{f"CODEHUB_KUBERNETES_{name}": value for name, value in cluster.items()},
    }
