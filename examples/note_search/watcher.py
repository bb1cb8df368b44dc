"""Call a function after files in a folder changed."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

# Reading a file is an event too; it changes nothing.
_CHANGES = {"created", "modified", "moved", "deleted", "closed"}


class FolderWatcher:
    """Call a function in a thread of its own: at the start, after files in a folder changed, and once a minute.

    The function gets no list of files: it looks at the folder itself. So a rename, or an editor that replaces files,
    needs no code of its own. Events may be missing: network drives send none, systems drop some, and watchdog's thread
    can end with an error when folders are replaced. Hence the call once a minute. Hidden files and folders are ignored.

    Args:
        folder: The folder; its subfolders are watched too.
        on_change: The function.
        quiet_s: How long the files must stay unchanged before the function is called, in seconds.
        max_delay_s: The longest time to wait for that, in seconds.
        rescan_s: The longest time between two calls, in seconds.
    """

    def __init__(
        self,
        folder: Path,
        on_change: Callable[[], object],
        *,
        quiet_s: float = 0.3,
        max_delay_s: float = 5.0,
        rescan_s: float = 60.0,
    ) -> None:
        self._on_change = on_change
        self._quiet_s = quiet_s
        self._max_delay_s = max_delay_s
        self._rescan_s = rescan_s
        self._changed = threading.Event()
        self._is_stopping = False
        self._observer = Observer()
        folder = folder.resolve()  # macOS reports events with resolved paths
        self._observer.schedule(_Handler(folder, self._changed), str(folder), recursive=True)
        self._thread = threading.Thread(target=self._run, name="folder watcher", daemon=True)

    def __enter__(self) -> "FolderWatcher":
        """Start watching."""
        self._observer.start()
        self._changed.set()
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Stop watching; a running call of the function ends first."""
        self._observer.stop()
        self._observer.join()
        self._is_stopping = True
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._changed.wait(self._rescan_s)
            deadline = time.monotonic() + self._max_delay_s
            while not self._is_stopping and self._changed.is_set() and time.monotonic() < deadline:
                self._changed.clear()
                self._changed.wait(self._quiet_s)
            if self._is_stopping:
                return
            self._changed.clear()
            self._on_change()


class _Handler(FileSystemEventHandler):
    def __init__(self, folder: Path, changed: threading.Event) -> None:
        self._folder = folder
        self._changed = changed

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Set the flag if the event is about a file that is not hidden."""
        if event.event_type in _CHANGES and any(map(self._is_visible, (event.src_path, event.dest_path))):
            self._changed.set()

    def _is_visible(self, path: bytes | str) -> bool:
        if not path:
            return False
        name = path.decode(errors="replace") if isinstance(path, bytes) else path
        return not any(part.startswith(".") for part in Path(name).relative_to(self._folder).parts)
