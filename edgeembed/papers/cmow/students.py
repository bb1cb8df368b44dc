"""The kinds `cmow` and `hybrid`."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgeembed.students.base import STUDENTS
from edgeembed.students.matrix_student import MatrixStudent

if TYPE_CHECKING:
    from edgeembed.students.cmow import Architecture


@STUDENTS.register("cmow")
class CMOW(MatrixStudent):
    """The product of a text's token matrices, in one direction or both (section 2.1).

    Attributes:
        matrix_dim: Rows of a token's matrix.
    """

    architecture: ClassVar["Architecture"] = "cmow"

    matrix_dim: int = Field(default=20, ge=1, le=64)

    def row_widths(self) -> dict[str, int]:
        """Return the width of a row of each table by the setting that decides it."""
        return {"vector_dim": self.vector_dim, "matrix_dim": self.matrix_dim**2}


@STUDENTS.register("hybrid")
class Hybrid(CMOW):
    """The product of a text's token matrices beside the sum of its token vectors (section 2.1)."""

    architecture: ClassVar["Architecture"] = "hybrid"
