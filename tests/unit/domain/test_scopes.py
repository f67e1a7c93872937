"""What the scopes of a token include."""

import pytest

from codehub.domain.scopes import Scope, with_implied


@pytest.mark.parametrize("scope", [Scope.WORKSPACES, Scope.ADMIN])
def test_whoever_changes_something_may_read(scope: Scope) -> None:
    assert with_implied([scope]) == {scope, Scope.READ}


def test_reading_implies_nothing_else() -> None:
    assert with_implied([Scope.READ]) == {Scope.READ}
