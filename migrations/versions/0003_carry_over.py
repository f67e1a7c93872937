"""Convert the rows of M1 in short transactions, by the trigger of 0002."""

from migrations.steps import update_in_batches

revision = "0003_carry_over"
down_revision = "0002_expand"


def upgrade() -> None:
    update_in_batches("workspaces", "status = status", where="phase IS NULL")


def downgrade() -> None:
    """Do nothing: the status of M1 was kept."""
