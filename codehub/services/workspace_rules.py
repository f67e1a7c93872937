"""Administrators' rules for workspaces: allowed images and the longest idle times."""

from dataclasses import dataclass
from datetime import timedelta

from codehub.db.workspaces import NewWorkspace
from codehub.domain.images import AllowedImages
from codehub.domain.limits import IdleTimes
from codehub.services.errors import IdleTimeTooLong, ImageNotAllowed
from codehub.services.workspaces import MetadataValues


@dataclass(frozen=True)
class WorkspaceRules:
    """Rules for creating and changing workspaces; a start checks the image again."""

    images: AllowedImages
    longest: IdleTimes

    def check_new(self, new: NewWorkspace) -> None:
        """Raise ImageNotAllowed or IdleTimeTooLong."""
        if not self.images.includes(new.image_ref):
            raise ImageNotAllowed(new.image_ref, self.images.describe())
        self.check_change(vars(new.metadata))

    def check_change(self, change: MetadataValues) -> None:
        """Raise IdleTimeTooLong."""
        bounds = {"standby_ttl_seconds": self.longest.standby, "archive_ttl_seconds": self.longest.archive}
        for field, longest in bounds.items():
            seconds = change.get(field)
            if isinstance(seconds, int) and timedelta(seconds=seconds) > longest:
                raise IdleTimeTooLong(field, longest)
