"""Carry the rows of M1 over, in short transactions; the trigger of 0002 knows how."""

from migrations.steps import update_in_batches

revision = "0003_carry_over"
down_revision = "0002_expand"


def upgrade() -> None:
    update_in_batches("workspaces", "status = status", where="phase IS NULL")


def downgrade() -> None:
    """M1's status was kept all along, so there is nothing to do."""
