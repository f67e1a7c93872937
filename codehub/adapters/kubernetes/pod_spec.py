"""The Pod that runs the IDE of a workspace."""

import hashlib
import json
import secrets
from collections.abc import Mapping

from lightkube.models.core_v1 import (
    Capabilities,
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    EnvVar,
    HTTPGetAction,
    HTTPHeader,
    LocalObjectReference,
    PersistentVolumeClaimVolumeSource,
    PodSecurityContext,
    PodSpec,
    Probe,
    ResourceRequirements,
    SeccompProfile,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.options import (
    CONFIGURATION_ANNOTATION,
    IMAGE_REF_ANNOTATION,
    SECRET_ANNOTATION,
    TRAITS_ANNOTATION,
    USER_ID,
    Component,
    KubernetesOptions,
    Placement,
    Resources,
)
from codehub.adapters.kubernetes.pods import dump_traits, reserved_ports
from codehub.adapters.kubernetes.quantities import format_cpus
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.egress_tokens import make_preamble
from codehub.image_traits import ImageTraits
from codehub.instance_egress import proxy_environment
from codehub.instance_ports import forwarder_options
from codehub.ports import InstanceRequest

HOME = "/home/coder"
# See workspace_agent/options.py.
AGENT_VARIABLE = "CODEHUB_AGENT"
SECRET_BYTES = 32
# A failed check of the IDE counts once it was repeated: a busy IDE misses one now and then.
PROBE_FAILURES = 3


def instance_pod(request: InstanceRequest, options: KubernetesOptions) -> Pod:
    """Return the Pod that a start creates, without its secrets."""
    workspace_id, traits = request.workspace_id, options.traits_of(request.image_ref)
    spec = _instance_spec(workspace_id, options.resolve_image(request.image_ref), traits, options)
    annotations = {
        IMAGE_REF_ANNOTATION: request.image_ref,
        TRAITS_ANNOTATION: dump_traits(traits),
        CONFIGURATION_ANNOTATION: _made_from(spec, traits, options),
    }
    return Pod(
        metadata=ObjectMeta(
            name=container_name(workspace_id),
            labels=options.labels(workspace_id, Component.WORKSPACE),
            annotations=annotations,
        ),
        spec=spec,
    )


def with_secrets(pod: Pod, workspace_id: WorkspaceId, options: KubernetesOptions, traits: ImageTraits) -> Pod:
    """Give a new Pod what it must not be compared by: a secret of its own, and what its agent is told.

    Without it, a request for one Pod could be served by another one that has taken over its address.
    """
    secret = secrets.token_hex(SECRET_BYTES)
    variables = {traits.secret_variable: secret} if traits.secret_variable else {}
    if services := _agent_services(workspace_id, traits, options, secret):
        variables[AGENT_VARIABLE] = json.dumps({"services": services})
    if pod.metadata is None or pod.metadata.annotations is None or pod.spec is None:
        raise TypeError("a Pod without a specification")
    pod.metadata.annotations[SECRET_ANNOTATION] = secret
    container = pod.spec.containers[0]
    container.env = [*(container.env or []), *_variables(variables)]
    if container.readinessProbe and container.readinessProbe.httpGet:
        headers = [HTTPHeader(name, value) for name, value in traits.headers(secret)]
        container.readinessProbe.httpGet.httpHeaders = headers or None
    return pod


def differences(made_from: str, wanted: Pod) -> tuple[str, ...]:
    """Return what differs between a Pod with this annotation and the wanted one.

    An annotation that is not JSON counts as no difference.
    """
    try:
        before = json.loads(made_from)
    except ValueError:
        return ()
    now = json.loads(configuration_of(wanted))
    return tuple(sorted(name for name in now if now[name] != before.get(name)))


def configuration_of(pod: Pod) -> str:
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    return str(annotations.get(CONFIGURATION_ANNOTATION, ""))


def restricted_context(*, read_only_root: bool) -> SecurityContext:
    """Return what the Pod Security Standard `restricted` asks of a container."""
    return SecurityContext(
        allowPrivilegeEscalation=False,
        capabilities=Capabilities(drop=["ALL"]),
        readOnlyRootFilesystem=read_only_root,
        runAsNonRoot=True,
    )


def restricted_pod_context() -> PodSecurityContext:
    """Return what the Pod Security Standard `restricted` asks of a Pod; its volume belongs to the user."""
    return PodSecurityContext(
        runAsNonRoot=True,
        runAsUser=USER_ID,
        runAsGroup=USER_ID,
        fsGroup=USER_ID,
        # Otherwise the kubelet changes the owner of every file at each start.
        fsGroupChangePolicy="OnRootMismatch",
        seccompProfile=SeccompProfile(type="RuntimeDefault"),
    )


def requirements(resources: Resources) -> ResourceRequirements:
    temporary = str(resources.temporary_bytes)
    return ResourceRequirements(
        requests={
            "memory": str(min(resources.requested_memory_bytes, resources.memory_bytes)),
            "cpu": format_cpus(min(resources.requested_cpus, resources.cpus)),
        },
        limits={
            "memory": str(resources.memory_bytes),
            "cpu": format_cpus(resources.cpus),
            "ephemeral-storage": temporary,
        },
    )


def placed(spec: PodSpec, placement: Placement) -> PodSpec:
    """Return the specification with where the Pod may run."""
    spec.nodeSelector = dict(placement.node_selector) or None
    spec.tolerations = [Toleration(**each) for each in placement.tolerations] or None
    spec.runtimeClassName = placement.runtime_class
    spec.priorityClassName = placement.priority_class
    spec.imagePullSecrets = [LocalObjectReference(name) for name in placement.image_pull_secrets] or None
    return spec


def home_volume(workspace_id: WorkspaceId) -> Volume:
    claim = PersistentVolumeClaimVolumeSource(claimName=volume_name(workspace_id))
    return Volume(name="home", persistentVolumeClaim=claim)


def _instance_spec(
    workspace_id: WorkspaceId, image: str, traits: ImageTraits, options: KubernetesOptions
) -> PodSpec:
    ports = [ContainerPort(each) for each in (traits.port, traits.agent_port) if each is not None]
    environment = {
        "CODEHUB_WORKSPACE_ID": workspace_id,
        "CODEHUB_BASE_PATH": options.base_path_of(workspace_id),
        **options.environment,
        **(proxy_environment() if _uses_gateway(traits, options) else {}),
    }
    container = Container(
        name="ide",
        image=image,
        imagePullPolicy=options.placement.image_pull_policy,
        env=_variables(environment),
        ports=ports,
        readinessProbe=_probe(workspace_id, traits, options),
        resources=requirements(options.resources),
        securityContext=restricted_context(read_only_root=traits.read_only_root),
        volumeMounts=[VolumeMount(HOME, "home"), VolumeMount("/tmp", "temporary")],  # noqa: S108
    )
    spec = PodSpec(
        containers=[container],
        hostname="workspace",
        # CodeHub replaces an exited Pod itself, after it has seen why it exited.
        restartPolicy="Never",
        terminationGracePeriodSeconds=options.timeouts.stop,
        automountServiceAccountToken=False,
        # Variables about the Services of the namespace are of no use inside, and slow the start down.
        enableServiceLinks=False,
        # The pause container reaps zombies, as an init would.
        shareProcessNamespace=True,
        securityContext=restricted_pod_context(),
        volumes=[home_volume(workspace_id), Volume(name="temporary", emptyDir=EmptyDirVolumeSource())],
    )
    return placed(spec, options.placement)


def _probe(workspace_id: WorkspaceId, traits: ImageTraits, options: KubernetesOptions) -> Probe:
    base_path = options.base_path_of(workspace_id)
    path = traits.health_path.replace("/w/{id}/", base_path).replace("{id}", workspace_id)
    return Probe(
        httpGet=HTTPGetAction(port=traits.port, path=path),
        # The start waits for it.
        periodSeconds=1,
        timeoutSeconds=options.timeouts.probe,
        failureThreshold=PROBE_FAILURES,
    )


def _agent_services(
    workspace_id: WorkspaceId, traits: ImageTraits, options: KubernetesOptions, secret: str
) -> Mapping[str, Mapping[str, str]]:
    services = {}
    if options.egress and _uses_gateway(traits, options):
        # It proves its workspace to the gateway.
        preamble = make_preamble(options.egress.key, workspace_id)
        services["egress"] = {"gateway": options.egress.address, "preamble": preamble}
    if traits.agent_port is not None:
        address = {"port": str(traits.agent_port)}
        services["ports"] = forwarder_options(address, reserved_ports(traits), secret=secret)
    return services


def _uses_gateway(traits: ImageTraits, options: KubernetesOptions) -> bool:
    """Return whether the agent relays to the gateway; an image without an agent cannot."""
    return options.egress is not None and traits.agent_port is not None


def _variables(values: Mapping[str, str]) -> list[EnvVar]:
    return [EnvVar(name, value) for name, value in values.items()]


def _made_from(spec: PodSpec, traits: ImageTraits, options: KubernetesOptions) -> str:
    document = spec.to_dict()
    container = document["containers"][0]
    others = {
        **document,
        "containers": [{**container, "image": None, "resources": None}],
        "traits": dump_traits(traits),
    }
    made_from = {
        "image": container["image"],
        "memory": options.resources.memory_bytes,
        "CPUs": options.resources.cpus,
        "other settings": hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest(),
    }
    return json.dumps(made_from, sort_keys=True)
