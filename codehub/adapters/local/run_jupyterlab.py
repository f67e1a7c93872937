"""Run JupyterLab so that it can list files while they are being renamed or removed.

A program of its own: it runs in the sandbox, where nothing else of CodeHub can be imported.
"""

import errno
import os
import sys
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyterlab.labapp import main  # type: ignore[import-untyped]
from tornado.web import HTTPError

_listing: ContextVar[bool] = ContextVar("listing", default=False)


class Contents(AsyncLargeFileManager):
    """The usual contents manager, but a file that vanishes is left out of a listing.

    Jupyter Server 2.21 looks at everything that it lists twice. If a file is gone the second time, it answers
    404 for the whole directory, and JupyterLab opens a dialog, "Directory not found"; if it is a checkpoint,
    it answers 500. JupyterLab itself causes both under load, with Rename and Save.
    """

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        try:
            return await super().get(path, content, *args, **options)  # type: ignore[no-untyped-call]
        except HTTPError as error:
            if _listing.get() and error.status_code == HTTPStatus.NOT_FOUND:
                # The listing leaves out what raises this.
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            raise

    async def _dir_model(self, path: str, content: bool = True) -> Any:  # noqa: ANN401
        before = _listing.set(content)
        try:
            return await super()._dir_model(path, content)  # type: ignore[no-untyped-call]
        finally:
            _listing.reset(before)

    async def list_checkpoints(self, path: str) -> Any:  # noqa: ANN401
        try:
            return await super().list_checkpoints(path)  # type: ignore[no-untyped-call]
        except FileNotFoundError:
            return []


if __name__ == "__main__":
    # Only the default: a person's own configuration goes before it.
    ServerApp.contents_manager_class.default_value = Contents
    sys.exit(main())
