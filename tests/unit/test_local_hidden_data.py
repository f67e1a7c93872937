"""Workspaces that run as the user of CodeHub must not see its data directory."""

from pathlib import Path

import pytest

from codehub.adapters.local.sandbox import NoSandbox, require_hidden

UIDS = range(1_900_000_000, 1_900_000_010)


@pytest.mark.parametrize("root", ["/opt/codehub/.codehub/local", "/usr/local/codehub/local", "/usr"])
def test_data_below_a_directory_that_workspaces_see_are_refused(root: str) -> None:
    with pytest.raises(NoSandbox, match="CODEHUB_DATA_DIR"):
        require_hidden(Path(root), (), None)
    # Started by root, workspaces are other users, who cannot enter it.
    require_hidden(Path(root), (), UIDS)


def test_data_inside_an_ide_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSandbox, match="below"):
        require_hidden(tmp_path / "venv" / "data", (tmp_path / "venv",), None)


@pytest.mark.parametrize("root", ["/var/lib/codehub/local", "/home/ada/codehub/.codehub/local", "/opting"])
def test_other_places_are_fine(root: str) -> None:
    require_hidden(Path(root), (Path("/home/ada/codehub/.venv"),), None)
