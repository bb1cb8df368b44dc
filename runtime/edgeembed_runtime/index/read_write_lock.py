"""A lock that many readers or one writer hold."""

import contextlib
import threading
from collections.abc import Iterator


class ReadWriteLock:
    """Lets any number of threads read, or one thread write. Waiting writers go before new readers. Not reentrant."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._has_writer = False  # also while the writer waits for readers to finish

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock for reading."""
        with self._condition:
            self._condition.wait_for(lambda: not self._has_writer)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock for writing."""
        with self._condition:
            self._condition.wait_for(lambda: not self._has_writer)
            self._has_writer = True
        try:
            with self._condition:
                self._condition.wait_for(lambda: self._readers == 0)
            yield
        finally:
            with self._condition:
                self._has_writer = False
                self._condition.notify_all()
