"""What a page is about, and for whom."""

from dataclasses import dataclass
from datetime import datetime

from codehub.db.views import WorkspaceView


@dataclass(frozen=True)
class Site:
    """What all pages of one installation share."""

    # The path of the public address, without a slash at its end.
    base_path: str = ""


@dataclass(frozen=True)
class Visit:
    """Who looks at which workspace, and where to go once it is there."""

    view: WorkspaceView
    form_token: str
    path: str
    now: datetime
