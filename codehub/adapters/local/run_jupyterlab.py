"""Runs JupyterLab so that it can list files while they are being renamed or removed.

This is a program of its own: in the sandbox it cannot import anything else of CodeHub.
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
    """The default contents manager, but listings leave out files that disappear meanwhile.

    Jupyter Server 2.21 reads every listed file twice. If the file is gone the second time, it returns 404 for
    the whole directory, and JupyterLab shows "Directory not found"; for a checkpoint it returns 500.
    JupyterLab itself causes both under load, with Rename and Save.
    """

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        try:
            return await super().get(path, content, *args, **options)  # type: ignore[no-untyped-call]
        except HTTPError as error:
            if _listing.get() and error.status_code == HTTPStatus.NOT_FOUND:
                # A listing leaves out files that raise this.
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
    # Only the default: a person's own configuration overrides it.
    ServerApp.contents_manager_class.default_value = Contents
    sys.exit(main())
