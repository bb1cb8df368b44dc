"""The kind `cbow`."""

from typing import TYPE_CHECKING, ClassVar

from edgeembed.students.base import STUDENTS
from edgeembed.students.matrix_student import MatrixStudent

if TYPE_CHECKING:
    from edgeembed.students.cmow import Architecture


@STUDENTS.register("cbow")
class CBOW(MatrixStudent):
    """The sum, or the mean, of a text's token vectors, and a linear head; runs on NumPy alone."""

    architecture: ClassVar["Architecture"] = "cbow"
