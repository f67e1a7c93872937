"""Documents match the repository, and nothing names one machine."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GIT = shutil.which("git") or "git"

# In pieces, because this file must not contain what it searches for.
MACHINE_DIRECTORIES = ("work", "root", "opt/wheels")
REGISTRY_HOSTS = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("ghcr", "io"),
    ("quay", "io"),
)
# Does not match `/workspaces`, nor such a directory below another one.
MACHINE_PATH = re.compile(rf"(?<![\w.}})*~-])/(?:{'|'.join(MACHINE_DIRECTORIES)})(?![\w-])")
REGISTRY = re.compile("|".join(rf"\b{name}\.{domain}\b" for name, domain in REGISTRY_HOSTS))

LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)(?:#[^)\s]*)?\)")
COMMAND = re.compile(r"(?:^|`)make ([a-z]+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
# Built from this repository, so no index and no lock has to provide it.
OWN_DISTRIBUTIONS = {"codehub-gameday"}
REQUIREMENT = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def own_files() -> list[Path]:
    """Return the files that are in the repository or would be after `git add`."""
    command = [GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in listing.split("\0") if name]
    # A deleted file stays in the index until the deletion is staged.
    return [file for file in files if file.is_file()]


def files_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for file in own_files():
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


def direct_dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(each for extra in extras for each in extra)]
    return {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements} - OWN_DISTRIBUTIONS


def test_every_dependency_is_documented() -> None:
    page = (ROOT / "docs/dependencies.md").read_text()
    documented = re.findall(r"^\| `([a-z0-9-]+)(?:\[[a-z0-9,]+\])?` \| \S", page, re.MULTILINE)
    assert sorted(documented) == sorted(direct_dependencies() | {"uv"})


@pytest.mark.parametrize("name", ["bootstrap", "runtime", "dev", "control-plane", "storage-job"])
def test_a_lock_has_hashes_and_names_no_host(name: str) -> None:
    lock = (ROOT / f"requirements/{name}.lock").read_text()
    pins = re.split(r"\n(?=\S)", lock)
    assert len(pins) == len(REQUIREMENT.findall(lock))
    assert [pin.splitlines()[0] for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in lock


def test_every_dependency_is_locked() -> None:
    locked = set(REQUIREMENT.findall((ROOT / "requirements/dev.lock").read_text()))
    assert direct_dependencies() - locked == set()


def test_there_is_one_kind_of_lock() -> None:
    assert [file for file in own_files() if file.name == "uv.lock"] == []


def test_nothing_names_a_directory_of_one_machine() -> None:
    assert files_with(MACHINE_PATH) == []


def test_nothing_names_the_host_of_a_registry() -> None:
    assert files_with(REGISTRY) == []


@pytest.mark.parametrize("text", ["cd {}/main", "path={}", "`{}/.cache`", "file://{}/x", '"{}"'])
def test_a_directory_of_one_machine_is_recognized(text: str) -> None:
    assert [name for name in MACHINE_DIRECTORIES if not MACHINE_PATH.search(text.format(f"/{name}"))] == []


@pytest.mark.parametrize("text", ["{}spaces/1", "volume{}", "~{}", "{}-tree", "./a{}"])
def test_other_paths_are_not_recognized(text: str) -> None:
    assert [name for name in MACHINE_DIRECTORIES if MACHINE_PATH.search(text.format(f"/{name}"))] == []


@pytest.mark.parametrize("host", REGISTRY_HOSTS, ids=".".join)
def test_the_host_of_a_registry_is_recognized(host: tuple[str, str]) -> None:
    assert REGISTRY.search(f"https://files.{'.'.join(host)}/simple")


def test_the_index_lists_every_decision() -> None:
    decisions = {file.name for file in (ROOT / "docs/adr").glob("[0-9]*.md")}
    listed = LINK.findall((ROOT / "docs/adr/README.md").read_text())
    assert sorted(name for name in listed if name[0].isdigit()) == sorted(decisions)


def test_every_decision_has_the_parts_of_the_template() -> None:
    parts = re.findall(r"^## \w+", (ROOT / "docs/adr/template.md").read_text(), re.MULTILINE)
    assert len(parts) == 4
    for file in (ROOT / "docs/adr").glob("[0-9]*.md"):
        assert re.findall(r"^## \w+", file.read_text(), re.MULTILINE) == parts, file.name
        assert file.read_text().startswith(f"# {file.name[:4]}. "), file.name


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_command_in_the_documents_is_a_target(document: str) -> None:
    commands = COMMAND.findall((ROOT / document).read_text())
    assert {"up", "test"} <= set(commands)
    assert set(commands) - set(TARGET.findall((ROOT / "Makefile").read_text())) == set()


def test_every_relative_link_has_a_target() -> None:
    pages = [file for file in own_files() if file.suffix == ".md"]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text())]
    assert links
    broken = [
        f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()
    ]
    assert broken == []


def test_the_ci_script_is_valid_and_executable() -> None:
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    checked = subprocess.run(["/bin/bash", "-n", script], check=False, capture_output=True, text=True)
    assert checked.stderr == ""
