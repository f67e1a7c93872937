"""Every test belongs to an area of `make t` and to a group of `make test`."""

from collections import Counter

import pytest

from tests.areas import AREAS, ROOT
from tests.run import GROUPS, main

TESTS = ROOT / "tests"
FILES = set(TESTS.rglob("test_*.py"))


def test_every_test_belongs_to_an_area() -> None:
    in_areas = {file for area in AREAS.values() for file in area.files()}
    assert {str(file.relative_to(TESTS)) for file in FILES - in_areas} == set()


@pytest.mark.parametrize("name", AREAS)
def test_an_area_names_only_what_exists(name: str) -> None:
    assert [path for path in AREAS[name].changed if not (ROOT / path).exists()] == []
    assert [pattern for pattern in AREAS[name].tests if not list(TESTS.glob(pattern))] == []


def test_an_unknown_area_lists_the_areas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    output = capsys.readouterr().err
    assert [name for name in AREAS if name not in output] == []


def test_contributing_lists_every_area() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [
        f"| {', '.join(f'`{path}`' for path in area.changed)} | `make t AREA={name}` |"
        for name, area in AREAS.items()
    ]
    assert [row for row in rows if row not in page] == []


def test_every_directory_of_tests_is_in_one_group() -> None:
    directories = {file.relative_to(TESTS).parts[0] for file in FILES}
    assert Counter(each for group in GROUPS.values() for each in group) == Counter(directories)
