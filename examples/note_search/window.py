"""The window of the note search."""

import queue
import tkinter as tk

from edgeembed_runtime import Hit

from .notes import Notes
from .watcher import FolderWatcher

_POLL_MS = 100
_TYPING_MS = 150


class SearchWindow:
    """A query, the notes that match it, and the note that is selected.

    Only the main thread may touch tkinter, so the watcher's thread leaves its messages in a queue.

    Args:
        root: The window.
        notes: The notes.
    """

    def __init__(self, root: tk.Tk, notes: Notes) -> None:
        self._root = root
        self._notes = notes
        self._hits: list[Hit] = []
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._pending: str | None = None
        root.title(f"Notes in {notes.folder}")
        self.query = tk.StringVar(root)
        self.query.trace_add("write", lambda *_: self._search_soon())
        entry = tk.Entry(root, textvariable=self.query)
        entry.pack(fill="x")
        entry.focus_set()
        self.results = tk.Listbox(root, activestyle="none", exportselection=False)
        self.results.pack(fill="both", expand=True)
        self.results.bind("<<ListboxSelect>>", lambda _: self._show_selected())
        self.preview = tk.Text(root, height=12, wrap="word", state="disabled")
        self.preview.tag_configure("passage", background="#fff2b3", foreground="black")
        self.preview.pack(fill="both", expand=True)
        self.status = tk.Label(root, anchor="w", text="reading the notes ...")
        self.status.pack(fill="x")
        root.after(_POLL_MS, self._poll)

    def refresh(self) -> None:
        """Bring the index up to date. The watcher calls this in its own thread."""
        self._messages.put(self._notes.refresh())

    def _poll(self) -> None:
        message = None
        while not self._messages.empty():
            message = self._messages.get()
        if message is not None:
            self.status.configure(text=message)
            self._search()
        self._root.after(_POLL_MS, self._poll)

    def _search_soon(self) -> None:
        if self._pending is not None:
            self._root.after_cancel(self._pending)
        self._pending = self._root.after(_TYPING_MS, self._search)

    def _search(self) -> None:
        self._hits = self._notes.search(self.query.get())
        self.results.delete(0, "end")
        for hit in self._hits:
            self.results.insert("end", hit.id)
        if self._hits:
            self.results.selection_set(0)
        self._show_selected()

    def _show_selected(self) -> None:
        self.preview.configure(state="normal")
        self.preview.delete("1.0", "end")
        for row in self.results.curselection():  # type: ignore[no-untyped-call]
            hit = self._hits[row]
            self.preview.insert("1.0", hit.text)
            if hit.passage is not None:
                start, end = (f"1.0 + {place} chars" for place in (hit.passage.start, hit.passage.end))
                self.preview.tag_add("passage", start, end)
                self.preview.see(start)
        self.preview.configure(state="disabled")


def run_window(notes: Notes) -> None:
    """Show the window and watch the files, until the window is closed."""
    root = tk.Tk()
    window = SearchWindow(root, notes)
    with FolderWatcher(notes.folder, window.refresh):
        root.mainloop()
