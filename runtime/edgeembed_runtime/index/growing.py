"""Rows of numbers that more rows can be put behind without copying them all each time."""

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingRows:
    """Rows with room behind them. Each is a value: what is put behind it is another one over the same memory.

    Only the newest may get more rows behind it, or two would write into the same room.

    Args:
        room: (at least count, ...), in which the first `count` rows are taken.
        count: How many are; None, the default, stands for all.
    """

    def __init__(self, room: npt.NDArray[Any], count: int | None = None) -> None:
        self._room = room
        self._count = len(room) if count is None else count

    def __len__(self) -> int:
        """Give the number of rows."""
        return self._count

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The rows that are taken."""
        return self._room[: self._count]

    def followed_by(self, more: npt.NDArray[Any]) -> "GrowingRows":
        """Give these rows and more behind them.

        Args:
            more: (rows to add, ...), of the same type.
        """
        count = self._count + len(more)
        room = self._room
        if count > len(room):
            # Twice the room each time it is short: adding one by one copies each row about once.
            room = np.empty((max(count, 2 * self._count), *room.shape[1:]), dtype=room.dtype)
            room[: self._count] = self.rows
        room[self._count : count] = more
        return GrowingRows(room, count)

    def kept(self, positions: npt.NDArray[np.intp]) -> "GrowingRows":
        """Give some of the rows, in memory of their own."""
        return GrowingRows(self.rows[positions])
