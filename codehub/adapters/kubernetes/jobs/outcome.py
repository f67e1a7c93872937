"""What the status of a job's Pod means: launching, running, ended, and why it failed."""

from lightkube.resources.core_v1 import Pod

from codehub.adapters.kubernetes.pods import CREATE_FAILURES, HOPELESS, PULL_FAILURES, PodInfo, explain_exit
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput

MESSAGE_LENGTH = 400


def has_ended(pod: Pod) -> bool:
    return PodInfo.of(pod).has_exited


def has_started(pod: Pod) -> bool:
    return PodInfo.of(pod).phase != "Pending"


def is_lost(pod: Pod) -> bool:
    """Return whether its node does not respond: only that makes a running Pod without probes not ready.

    A terminating Pod counts too, because the cluster gives up the Pods of a lost node after a while.
    """
    info = PodInfo.of(pod)
    ready = info.condition("Ready")
    return info.phase == "Running" and not info.has_exited and ready is not None and ready.status == "False"


def cannot_launch(pod: Pod) -> bool:
    """Return whether the kubelet has failed to start the container. It goes on trying."""
    return _waiting_reason(pod) in PULL_FAILURES | CREATE_FAILURES


def is_hopeless(pod: Pod) -> bool:
    """Return whether trying again cannot help."""
    return _waiting_reason(pod) in HOPELESS


def launch_failure(pod: Pod) -> Failure:
    """Return the failure of a container that did not start in time."""
    if _waiting_reason(pod) in PULL_FAILURES:
        image = pod.spec.containers[0].image if pod.spec else ""
        return Permanent(
            ErrorReason.IMAGE_PULL_FAILED,
            f"The image {image} of the storage job is not available: {_why_waiting(pod)}. "
            "Make it available to the cluster, then recover.",
        )
    return Transient(
        ErrorReason.ACTION_FAILED, f"The Pod of the storage job did not start: {_why_waiting(pod)}."
    )


def check_outcome(pod: Pod, output: JobOutput) -> None:
    """Raise a Failure unless the job succeeded. The termination message has its last line."""
    info = PodInfo.of(pod)
    if info.exit and info.exit.message:
        output.feed(info.exit.message.encode())
    status = info.exit.exitCode if info.exit else None
    if (status, output.last.get("event")) == (0, "done"):
        return
    if _was_ended_by_cluster(info):
        # The job itself only knows that it was told to stop, if it knows anything.
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"The storage job did not finish. {explain_exit(info)}."[:MESSAGE_LENGTH],
        )
    output.check(status)


def _was_ended_by_cluster(info: PodInfo) -> bool:
    reason = info.pod.status.reason if info.pod.status else None
    return bool(reason) or info.exit is None or info.exit.reason == "OOMKilled"


def _waiting_reason(pod: Pod) -> str:
    waiting = PodInfo.of(pod).waiting
    return (waiting.reason if waiting else None) or ""


def _why_waiting(pod: Pod) -> str:
    """Return why the container does not run, in the words of Kubernetes."""
    scheduled = PodInfo.of(pod).condition("PodScheduled")
    unscheduled = scheduled if scheduled and scheduled.status == "False" else None
    cause = unscheduled or PodInfo.of(pod).waiting
    text = (
        ": ".join(each for each in (cause.reason, cause.message) if each) if cause else "no reason is known"
    )
    return " ".join(text.split()).rstrip(".")[:MESSAGE_LENGTH]
