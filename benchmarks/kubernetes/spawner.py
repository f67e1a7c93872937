"""KubeSpawner, configured to make Pods and claims like CodeHub's."""

from benchmarks.instances.contestants import HUB, START_SECONDS
from benchmarks.instances.jupyterhub import user_name
from benchmarks.instances.jupyterhub_setup import Spawner
from benchmarks.kubernetes.testbed import NAMESPACE, Testbed
from codehub.adapters.kubernetes.options import USER_ID, Resources
from codehub.adapters.kubernetes.pod_spec import HOME, restricted_context, restricted_pod_context
from testkit.fakes import IMAGE

NAME = "hub-{username}"


def hub_pod(_reference: str, number: int) -> str:
    return NAME.replace("{username}", user_name(number))


def kube_spawner(testbed: Testbed) -> Spawner:
    environment = {"KUBECONFIG": str(testbed.kubeconfig(HUB))}
    return Spawner("jupyterhub-kubespawner", _settings(testbed), environment)


def _settings(testbed: Testbed) -> dict[str, object]:
    options = testbed.options("hub")
    settings = {
        "namespace": NAMESPACE,
        "image": IMAGE,
        "image_pull_policy": options.placement.image_pull_policy,
        "port": 8080,
        "environment": {"CODEHUB_BASE_PATH": "/"},
        "pod_name_template": NAME,
        "pvc_name_template": NAME,
        # As in CodeHub: the home in a claim that the first start creates, if none exists.
        "storage_pvc_ensure": True,
        "storage_class": options.claims.storage_class,
        "storage_capacity": str(options.claims.size_bytes),
        "storage_access_modes": [options.claims.access_mode],
        "volumes": [
            {"name": "home", "persistentVolumeClaim": {"claimName": NAME}},
            {"name": "temporary", "emptyDir": {}},
        ],
        "volume_mounts": [
            {"name": "home", "mountPath": HOME},
            {"name": "temporary", "mountPath": "/tmp"},  # noqa: S108 (the container's)
        ],
        "container_security_context": restricted_context(read_only_root=True).to_dict(),
        "pod_security_context": restricted_pod_context().to_dict(),
        "uid": USER_ID,
        "extra_pod_config": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "shareProcessNamespace": True,
        },
        "start_timeout": START_SECONDS,
        "http_timeout": START_SECONDS,
        **_limits(options.resources),
    }
    spawner = {f"KubeSpawner.{name}": value for name, value in settings.items()}
    return {"JupyterHub.spawner_class": "kubespawner.KubeSpawner", **spawner}


def _limits(resources: Resources) -> dict[str, object]:
    return {
        "mem_limit": resources.memory_bytes,
        "mem_guarantee": resources.requested_memory_bytes,
        "cpu_limit": resources.cpus,
        "cpu_guarantee": resources.requested_cpus,
        "extra_resource_limits": {"ephemeral-storage": str(resources.temporary_bytes)},
    }
