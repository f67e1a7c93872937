"""Which IDE an image_ref selects on this machine."""

from pathlib import Path

import pytest

from codehub.adapters.local.ides import (
    Ide,
    LaunchValues,
    code_server,
    installed_ides,
    jupyterlab,
    resolve_ide,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason

IDE = Ide(command=("ide",), health_path="/", keep_prefix=False)
IDES = {"code-server": IDE, "jupyterlab": IDE}


@pytest.mark.parametrize(
    ("image_ref", "name"),
    [
        ("", "code-server"),
        ("default", "code-server"),
        ("jupyterlab", "jupyterlab"),
        ("code-server", "code-server"),
    ],
)
def test_an_image_ref_names_an_ide_and_an_empty_one_means_the_first(image_ref: str, name: str) -> None:
    assert resolve_ide(IDES, image_ref) == name


@pytest.mark.parametrize("image_ref", ["debian:12", "JupyterLab", "default "])
def test_an_unknown_image_is_refused_with_the_available_names(image_ref: str) -> None:
    with pytest.raises(Permanent, match="default, code-server, jupyterlab") as caught:
        resolve_ide(IDES, image_ref)
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED


def test_a_machine_without_any_ide_says_what_to_install() -> None:
    with pytest.raises(Permanent, match="install jupyterlab or code-server"):
        resolve_ide({}, "default")


def test_code_server_is_preferred_if_it_is_on_the_path(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, directory = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", str(directory))
    assert "code-server" not in installed_ides()
    (package / "package.json").touch()
    (package / "out").mkdir()
    (package / "out" / "entry.js").touch(mode=0o755)
    (directory / "code-server").symlink_to(package / "out" / "entry.js")
    assert next(iter(installed_ides())) == "code-server"
    ide = installed_ides()["code-server"]
    assert ide == code_server(directory / "code-server")
    assert not ide.keep_prefix
    assert ide.visible == (package,)


def test_placeholders_are_filled() -> None:
    launch = LaunchValues(WorkspaceId("one"), "secret", "/home/coder", "/private")
    assert (
        launch.fill("{id} {token} {home} {private} {socket} {other}")
        == "one secret /home/coder /private {socket} {other}"
    )
    assert "secret" not in repr(launch)


@pytest.mark.parametrize("ide", [jupyterlab(), code_server(Path("/usr/bin/true"))])
def test_every_ide_has_a_secret_and_none_is_on_a_command_line(ide: Ide) -> None:
    assert [word for word in ide.command if "{token}" in word] == []
    assert "{token}" in ide.environment.values()
    assert [value for _, value in ide.headers if "{token}" in value]
    assert "--auth=none" not in ide.command
