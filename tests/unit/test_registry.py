"""Workers register everything that workflows start by name."""

from codehub.domain.states import Operation
from worker.registry import WORKFLOWS
from workflows.converge import WORKFLOW_OF


def test_every_operation_has_a_registered_workflow() -> None:
    known = {each.__name__ for each in WORKFLOWS}
    assert set(WORKFLOW_OF) == set(Operation) - {Operation.NONE}
    assert set(WORKFLOW_OF.values()) <= known
    assert len(set(WORKFLOW_OF.values())) == len(WORKFLOW_OF)
