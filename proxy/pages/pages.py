"""The pages: one method each, with its status and template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.db.running_slots import RunningWorkspace
from codehub.db.views import WorkspaceView
from codehub.domain.recovery import RecoverChoice
from codehub.ports import Progress
from codehub.services.recovery import ArchiveToRestore
from codehub.words import NOTABLE_STEPS, PHASES, STEPS, choice_words
from proxy.pages import words
from proxy.pages.formatting import bar_values, progress_text
from proxy.pages.rendering import policy, render
from proxy.pages.safety import choosable, known_archive, safety
from proxy.transport.routing import Response

RETRY_AFTER_SECONDS = 5
# A program that was just started listens soon.
PORT_SECONDS = 2
SLOW_AFTER = timedelta(seconds=90)


@dataclass(frozen=True)
class Visit:
    """A person's visit to a workspace; `path` is where to go when the workspace is ready."""

    view: WorkspaceView
    form_token: str
    path: str
    now: datetime
    # The port of a program in the workspace; None means the IDE.
    port: int | None = None


class Pages:
    """HTML pages for people.

    Links to the main origin start with `base_path`: the path of the public URL without a final slash, or all
    of the URL on pages of a workspace's own origin. Forms may lead on to `form_targets`.
    """

    def __init__(self, base_path: str = "", *, on_own_origin: bool = False, form_targets: str = "") -> None:
        self._base_path = base_path
        self._on_own_origin = on_own_origin
        self._headers = (("Content-Security-Policy", policy(form_targets)),)

    def following(self, visit: Visit, progress: Progress | None, *, then_open: bool) -> Response:
        """Show the progress of an operation, then open the IDE.

        With `then_open` the operation only has to end first: the page then requests the workspace again.
        """
        view = visit.view
        elapsed = visit.now - view.op_started_at if view.op_started_at else None
        return self._render_visit(
            202,
            "following.html",
            visit,
            current=words.under_way(view),
            under_way=words.UNDER_WAY,
            ended={phase: each for phase, each in PHASES.items() if each.arrived},
            steps={step: STEPS[step] for step in sorted(NOTABLE_STEPS)},
            bar=bar_values(progress),
            progress_text=progress_text(progress, elapsed),
            slow=elapsed is not None and elapsed > SLOW_AFTER,
            slow_after=int(SLOW_AFTER.total_seconds()),
            then_open=then_open,
        )

    def start_needed(self, visit: Visit) -> Response:
        """Offer to start a new workspace."""
        return self._render_visit(502, "start_needed.html", visit)

    def restore_needed(self, visit: Visit) -> Response:
        """Offer to restore an archived workspace."""
        return self._render_visit(502, "restore_needed.html", visit)

    def failed(
        self, visit: Visit, choices: Sequence[RecoverChoice], archives: Sequence[ArchiveToRestore] = ()
    ) -> Response:
        """Explain an error, and offer the ways to recover."""
        view = visit.view
        return self._render_visit(
            502,
            "failed.html",
            visit,
            failure=words.failure(view),
            message=words.details(view.error_reason, view.error_message),
            safety=safety(view),
            choices=choices,
            archives=[choosable(each) for each in archives],
            words={each: choice_words(each, out_of_reach=view.lifecycle.out_of_reach) for each in choices},
        )

    def limit_reached(
        self, visit: Visit, running: Sequence[RunningWorkspace], limit: int, *, everyone: bool
    ) -> Response:
        """Offer to stop a workspace: this person, or `everyone`, has no running slot left."""
        slots = [(each, words.slot_state(each), each.is_stopping) for each in running]
        return self._render_visit(
            502,
            "limit_reached.html",
            visit,
            slots=slots,
            soon=any(stopping for _, _, stopping in slots),
            limit=limit,
            everyone=everyone,
        )

    def disk_limit_reached(self, visit: Visit, message: str) -> Response:
        """Explain that the workspace uses too much disk space to start."""
        return self._render_visit(502, "disk_limit_reached.html", visit, message=message)

    def confirm_stop(self, visit: Visit) -> Response:
        """Ask before stopping a workspace; only this page has the form token for that."""
        return self._render_visit(200, "confirm_stop.html", visit)

    def not_answering(self, visit: Visit) -> Response:
        """Explain that the IDE of a running workspace does not answer."""
        return self._render_visit(502, "not_answering.html", visit)

    def not_found(self) -> Response:
        return self._render(404, "not_found.html")

    def forbidden(self, username: str) -> Response:
        return self._render(403, "forbidden.html", username=username)

    def unavailable(self) -> Response:
        """Explain that a service which CodeHub needs does not answer."""
        wait = (*self._headers, ("Retry-After", str(RETRY_AFTER_SECONDS)))
        return render(
            503, "unavailable.html", wait, base_path=self._base_path, reload_after=RETRY_AFTER_SECONDS
        )

    def port_not_responding(self, port: int) -> Response:
        """Explain that nothing listens on a port, and reload until something does."""
        message = (
            f"No program answers on port {port} of this workspace. Start one there. This page opens it then."
        )
        return self._render_port(502, f"Nothing is at port {port} yet", message, reload_after=PORT_SECONDS)

    def port_stopped(self, entrance: str) -> Response:
        """Tell a guest that the workspace is not running; the owner can enter through the main origin."""
        message = "Only its owner can start it."
        return self._render_port(
            503, "This workspace is not running", message, link=(entrance, "I am the owner")
        )

    def port_unavailable(self, message: str) -> Response:
        return self._render_port(409, "This port cannot be opened", message)

    def port_not_shared(self, username: str) -> Response:
        message = f"You are signed in as {username}. Its owner can share it with you."
        return self._render_port(403, "This port is not shared", message, link=("/", "Your workspaces"))

    def rejected_form(self) -> Response:
        """Refuse a form that is too old or did not come from CodeHub."""
        return self._render(403, "rejected_form.html")

    def cookies(self, status: int, message: str) -> Response:
        return self._render(status, "cookies.html", message=message)

    def _render(self, status: int, template: str, **values: object) -> Response:
        return render(status, template, self._headers, base_path=self._base_path, **values)

    def _render_port(
        self,
        status: int,
        headline: str,
        message: str,
        *,
        reload_after: int = 0,
        link: tuple[str, str] | None = None,
    ) -> Response:
        return self._render(
            status, "port.html", headline=headline, message=message, reload_after=reload_after, link=link
        )

    def _render_visit(self, status: int, template: str, visit: Visit, **values: object) -> Response:
        return self._render(
            status,
            template,
            visit=visit,
            view=visit.view,
            address=visit.path if self._on_own_origin else self._base_path + visit.path,
            internal=self._internal_path(visit),
            archive=known_archive(visit.view),
            **values,
        )

    def _internal_path(self, visit: Visit) -> str:
        prefix = "" if self._on_own_origin else f"{self._base_path}/w/{visit.view.workspace_id}"
        return f"{prefix}/.codehub/"
