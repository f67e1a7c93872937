"""The Pod of a storage job, and the Secret with its request."""

from dataclasses import dataclass, field
from itertools import pairwise

from lightkube.models.core_v1 import (
    Container,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    ObjectFieldSelector,
    PodSpec,
    SecretVolumeSource,
    Volume,
    VolumeMount,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.core_v1 import Pod, Secret

from codehub.adapters.kubernetes.options import Component, KubernetesOptions
from codehub.adapters.kubernetes.pod_spec import (
    home_volume,
    placed,
    requirements,
    restricted_context,
    restricted_pod_context,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import job_name

DATA = "/data"
REQUEST_KEY = "request.json"
REQUEST_MOUNT = "/run/codehub/request"
LEASE_KEY = "renewed-at"
LEASE_MOUNT = "/run/codehub/lease"
RESULT = "/dev/termination-log"
# The caller changes it every RENEW_SECONDS, and the kubelet shows it to the job as a file.
LEASE_ANNOTATION = "codehub.io/renewed-at"
RENEW_SECONDS = 5.0
# A job ends when its lease has not changed for this long: its caller died, or its node lost the cluster. It
# outlasts a restart of the API server.
LEASE_SECONDS = 60.0
# What the job may need to clean up after the end of its lease; then it ends in any case.
CLEANUP_SECONDS = 10.0
# The longest job, of a very large home on a slow line. A step ends a job without progress much earlier.
DEADLINE_SECONDS = 24 * 3600
TEMPORARY_SIZE = "64Mi"


@dataclass(frozen=True)
class Job:
    """One run of a job. The name of its Secret tells its Pod from those of earlier and later jobs."""

    operation: str
    workspace_id: WorkspaceId
    request: bytes = field(repr=False)
    secret_name: str
    lease_seconds: float

    @property
    def needs_home(self) -> bool:
        # An empty archive needs none.
        return self.operation != "create-empty"


def job_pod(job: Job, renewed_at: str, options: KubernetesOptions) -> Pod:
    """Return the Pod. It starts only when its Secret exists, which needs the id of the Pod."""
    return Pod(
        metadata=ObjectMeta(
            name=job_name(job.workspace_id),
            labels=options.labels(job.workspace_id, Component.STORAGE_JOB),
            annotations={LEASE_ANNOTATION: renewed_at},
        ),
        spec=_pod_spec(job, options),
    )


def request_secret(job: Job, pod_uid: str, options: KubernetesOptions) -> Secret:
    """Return the Secret. Kubernetes removes it after its owner."""
    owner = OwnerReference(apiVersion="v1", kind="Pod", name=job_name(job.workspace_id), uid=pod_uid)
    return Secret(
        metadata=ObjectMeta(
            name=job.secret_name,
            labels=options.labels(job.workspace_id, Component.STORAGE_JOB),
            ownerReferences=[owner],
        ),
        immutable=True,
        stringData={REQUEST_KEY: job.request.decode()},
    )


def secret_name_of(pod: Pod) -> str | None:
    """Return the name of the Secret of this job. It is different for every job."""
    volumes = (pod.spec.volumes if pod.spec else None) or []
    return next((each.secret.secretName for each in volumes if each.secret), None)


def lease_seconds_of(pod: Pod) -> float:
    """Return how long this job goes on without a renewal."""
    arguments = (pod.spec.containers[0].args if pod.spec else None) or []
    given = dict(pairwise(arguments)).get("--lease-seconds", "")
    try:
        return float(given)
    except ValueError:
        return LEASE_SECONDS


def _pod_spec(job: Job, options: KubernetesOptions) -> PodSpec:
    home = [home_volume(job.workspace_id)] if job.needs_home else []
    spec = PodSpec(
        containers=[_container(job, [VolumeMount(DATA, each.name) for each in home], options)],
        volumes=[*home, *_own_volumes(job.secret_name)],
        restartPolicy="Never",
        activeDeadlineSeconds=DEADLINE_SECONDS,
        terminationGracePeriodSeconds=options.timeouts.stop,
        automountServiceAccountToken=False,
        enableServiceLinks=False,
        # The user of the workspaces, who owns all files of a home.
        securityContext=restricted_pod_context(),
    )
    return placed(spec, options.placement)


def _container(job: Job, home_mounts: list[VolumeMount], options: KubernetesOptions) -> Container:
    own_mounts = [
        VolumeMount(REQUEST_MOUNT, "request", readOnly=True),
        VolumeMount(LEASE_MOUNT, "lease", readOnly=True),
        VolumeMount("/tmp", "temporary"),  # noqa: S108 (inside the container)
    ]
    return Container(
        name="storage-job",
        image=options.job_image,
        imagePullPolicy=options.placement.image_pull_policy,
        args=_arguments(job),
        volumeMounts=[*home_mounts, *own_mounts],
        terminationMessagePath=RESULT,
        resources=requirements(options.job_resources),
        securityContext=restricted_context(read_only_root=True),
    )


def _arguments(job: Job) -> list[str]:
    request = ("--request", f"{REQUEST_MOUNT}/{REQUEST_KEY}", "--result", RESULT)
    lease = ("--lease", f"{LEASE_MOUNT}/{LEASE_KEY}", "--lease-seconds", str(job.lease_seconds))
    return [job.operation, *request, *lease]


def _own_volumes(secret_name: str) -> list[Volume]:
    renewed_at = ObjectFieldSelector(fieldPath=f"metadata.annotations['{LEASE_ANNOTATION}']")
    lease = DownwardAPIVolumeSource(items=[DownwardAPIVolumeFile(path=LEASE_KEY, fieldRef=renewed_at)])
    return [
        Volume(name="request", secret=SecretVolumeSource(secretName=secret_name, defaultMode=0o440)),
        Volume(name="lease", downwardAPI=lease),
        Volume(name="temporary", emptyDir=EmptyDirVolumeSource(sizeLimit=TEMPORARY_SIZE)),
    ]
