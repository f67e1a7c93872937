"""The pages, one method each."""

from collections.abc import Sequence
from datetime import timedelta

from codehub.db.running_slots import RunningWorkspace
from codehub.domain.recovery import RecoverChoice
from codehub.ports import Progress
from codehub.services.recovery import ArchiveToRestore
from codehub.words import CHOICES, NOTABLE_STEPS, PHASES, STEPS
from proxy.pages import words
from proxy.pages.amounts import figures, share
from proxy.pages.rendering import render
from proxy.pages.safety import choosable, known_archive, safety
from proxy.pages.visit import Site, Visit
from proxy.transport.routing import Response

RETRY_AFTER_SECONDS = 5
SLOW_AFTER = timedelta(seconds=90)


class Pages:
    """For people, who come with a browser; other clients are answered elsewhere."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def following(self, visit: Visit, progress: Progress | None, *, then_open: bool) -> Response:
        """Something is being done: shows how far it is, and opens the IDE once it is there.

        `then_open` says that something else had to end first: the page asks again when it has.
        """
        view = visit.view
        elapsed = visit.now - view.op_started_at if view.op_started_at else None
        return self._about(
            202,
            "following.html",
            visit,
            current=words.under_way(view),
            under_way=words.UNDER_WAY,
            ended={phase: said for phase, said in PHASES.items() if said.arrived},
            steps={step: STEPS[step] for step in sorted(NOTABLE_STEPS)},
            share=share(progress),
            figures=figures(progress, elapsed),
            slow=elapsed is not None and elapsed > SLOW_AFTER,
            slow_after=int(SLOW_AFTER.total_seconds()),
            then_open=then_open,
        )

    def start_needed(self, visit: Visit) -> Response:
        """It was never started."""
        return self._about(502, "start_needed.html", visit)

    def restore_needed(self, visit: Visit) -> Response:
        """Its files are in an archive."""
        return self._about(502, "restore_needed.html", visit)

    def failed(
        self, visit: Visit, choices: Sequence[RecoverChoice], archives: Sequence[ArchiveToRestore] = ()
    ) -> Response:
        """It needs a person: what happened, and what *recover* accepts, with the archives to choose from."""
        view = visit.view
        return self._about(
            502,
            "failed.html",
            visit,
            said=words.failure(view),
            message=words.details(view.error_reason, view.error_message),
            safety=safety(view),
            choices=choices,
            archives=[choosable(each) for each in archives],
            words=CHOICES,
        )

    def limit_reached(
        self, visit: Visit, running: Sequence[RunningWorkspace], limit: int, *, everyone: bool
    ) -> Response:
        """No place is left: for this person, or for anybody if `everyone`."""
        places = [(each, words.slot_state(each), each.is_stopping) for each in running]
        return self._about(
            502,
            "limit_reached.html",
            visit,
            places=places,
            soon=any(stopping for _, _, stopping in places),
            limit=limit,
            everyone=everyone,
        )

    def confirm_stop(self, visit: Visit) -> Response:
        """Ask before it is stopped; only this page has the token for that."""
        return self._about(200, "confirm_stop.html", visit)

    def not_answering(self, visit: Visit) -> Response:
        """It runs, but its IDE does not answer."""
        return self._about(502, "not_answering.html", visit)

    def not_found(self) -> Response:
        return self._plain(404, "not_found.html")

    def forbidden(self, username: str) -> Response:
        """Somebody else's."""
        return self._plain(403, "forbidden.html", username=username)

    def unavailable(self) -> Response:
        """We cannot know who asks or for what: something that we need does not answer."""
        wait = (("Retry-After", str(RETRY_AFTER_SECONDS)),)
        return render(503, "unavailable.html", wait, site=self._site, reload_after=RETRY_AFTER_SECONDS)

    def rejected_form(self) -> Response:
        """A form that is too old, or that we did not make."""
        return self._plain(403, "rejected_form.html")

    def _plain(self, status: int, template: str, **values: object) -> Response:
        return render(status, template, site=self._site, **values)

    def _about(self, status: int, template: str, visit: Visit, **values: object) -> Response:
        return self._plain(
            status,
            template,
            visit=visit,
            view=visit.view,
            address=self._site.base_path + visit.path,
            archive=known_archive(visit.view),
            **values,
        )
