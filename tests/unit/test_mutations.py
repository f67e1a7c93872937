"""Every mutation in the catalog fits the current code."""

import pytest

from testkit.mutations.__main__ import REPOSITORY, StaleMutation, mutated
from testkit.mutations.catalog import MUTATIONS, Mutation
from testkit.mutations.detectors import CRASH_MATRIX, Game


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_mutation_fits_exactly_one_place(mutation: Mutation) -> None:
    content = (REPOSITORY / mutation.file).read_text()
    changed = mutated(content, mutation)
    assert changed != content
    compile(changed, mutation.file, "exec")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_detector_exists(mutation: Mutation) -> None:
    detector = mutation.detector
    assert isinstance(detector, Game) or (REPOSITORY / detector.path).exists()


@pytest.mark.parametrize("content", ["", "twice twice"])
def test_a_mutation_that_fits_nowhere_or_twice_is_stale(content: str) -> None:
    mutation = Mutation("test", "file.py", "twice", "new", MUTATIONS[0].detector)
    with pytest.raises(StaleMutation, match="instead of once"):
        mutated(content, mutation)


def test_names_of_mutations_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 5


def test_at_least_four_mutations_need_the_whole_system() -> None:
    detectors = [mutation.detector for mutation in MUTATIONS]
    whole = [each for each in detectors if isinstance(each, Game) or each.path == CRASH_MATRIX]
    assert len(whole) >= 4
