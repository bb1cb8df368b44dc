"""The desktop note search finds what is in the files, whatever happens to them."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from edgeembed_runtime import Encoder, Index, InputError

from examples.note_search.app import format_hit
from examples.note_search.notes import MAX_SIZE_BYTES, Notes
from examples.note_search.watcher import FolderWatcher

ROOT = Path(__file__).parents[2]
BREAD = "Feed the sourdough starter with flour and water. #baking"
RATES = "The central bank raised interest rates. #Money #work/budget"


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder("nano")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two notes, one of them in a subfolder."""
    folder = tmp_path / "notes"
    (folder / "work").mkdir(parents=True)
    (folder / "bread.md").write_text(BREAD, encoding="utf-8")
    (folder / "work" / "rates.txt").write_text(RATES, encoding="utf-8")
    return folder


@pytest.fixture
def open_notes(folder: Path, encoder: Encoder, tmp_path: Path) -> Callable[[], Notes]:
    """Return a function that opens the notes as the app does when it starts."""
    return lambda: Notes(folder, tmp_path / "index", encoder)


@pytest.fixture
def notes(open_notes: Callable[[], Notes]) -> Notes:
    notes = open_notes()
    notes.sync()
    return notes


def found(notes: Notes, query: str) -> list[str]:
    return [hit.id for hit in notes.search(query)]


def test_notes_are_found_by_meaning(notes: Notes) -> None:
    assert found(notes, "how to make bread") == ["bread.md", "work/rates.txt"]
    assert found(notes, "mortgage costs")[0] == "work/rates.txt"
    assert format_hit(notes.search("bread")[0]).endswith(f"bread.md  {BREAD}")


def test_tags_restrict_the_search(notes: Notes, folder: Path) -> None:
    assert found(notes, "bread #money") == ["work/rates.txt"]
    assert found(notes, "bread #money #baking") == []
    (folder / "later.md").write_text("Pay the tax. #money", encoding="utf-8")
    os.utime(folder / "later.md", (4_000_000_000, 4_000_000_000))
    notes.sync()
    assert found(notes, "#money") == ["later.md", "work/rates.txt"]
    assert found(notes, "") == []


def test_names_and_ends_of_long_notes_are_found(folder: Path, tmp_path: Path) -> None:
    notes = Notes(folder, tmp_path / "index")  # with the encoder that the app takes
    text = "The weather is fine today. " * 200 + "Call Ms. Quorzick about the router."
    (folder / "long.md").write_text(text, encoding="utf-8")
    notes.sync()
    for query in ("Quorzick", "network hardware"):
        hit = notes.search(query)[0]
        assert hit.id == "long.md"
        assert hit.passage is not None
        assert "router" in hit.passage.text


def test_written_changed_and_removed_files_are_followed(notes: Notes, folder: Path) -> None:
    (folder / "cat.md").write_text("The kitten sleeps all day.", encoding="utf-8")
    (folder / "bread.md").write_text("Paint for the outside walls of a house.", encoding="utf-8")
    (folder / "work" / "rates.txt").unlink()
    changes = notes.sync()
    assert (changes.added, changes.updated, changes.removed) == (["cat.md"], ["bread.md"], ["work/rates.txt"])
    assert found(notes, "young cat") == ["cat.md", "bread.md"]
    assert found(notes, "color of the facade")[0] == "bread.md"
    assert not notes.sync()


def test_renamed_files_and_folders_are_found_by_their_new_path(notes: Notes, folder: Path) -> None:
    (folder / "bread.md").rename(folder / "sourdough.md")
    (folder / "work").rename(folder / "office")
    notes.sync()
    assert sorted(found(notes, "bread")) == ["office/rates.txt", "sourdough.md"]


def test_files_with_the_same_text_are_separate_notes(notes: Notes, folder: Path) -> None:
    (folder / "copy.md").write_text(BREAD, encoding="utf-8")
    notes.sync()
    assert sorted(found(notes, "bread")[:2]) == ["bread.md", "copy.md"]
    (folder / "bread.md").unlink()
    notes.sync()
    assert found(notes, "bread")[0] == "copy.md"


def test_restart_reopens_the_index_and_catches_up(
    notes: Notes, folder: Path, open_notes: Callable[[], Notes], tmp_path: Path
) -> None:
    assert notes.refresh() == "2 notes"  # nothing changed since the fixture, so nothing was saved
    notes.save()
    (folder / "bread.md").unlink()
    (folder / "cat.md").write_text("The kitten sleeps all day.", encoding="utf-8")
    restarted = open_notes()
    assert len(restarted) == 2
    assert restarted.refresh() == "2 notes, 1 added, 1 removed"
    assert found(open_notes(), "pets") == ["cat.md", "work/rates.txt"]


def test_damaged_index_and_index_of_another_encoder_are_built_again(
    notes: Notes, folder: Path, open_notes: Callable[[], Notes], tmp_path: Path
) -> None:
    notes.save()
    assert len(Notes(folder, tmp_path / "index", Encoder("mini"))) == 0
    (tmp_path / "index" / "index.json").write_text("{}", encoding="utf-8")
    assert len(open_notes()) == 0


def test_what_is_no_text_is_skipped_with_its_reason(notes: Notes, folder: Path, encoder: Encoder) -> None:
    (folder / "photo.md").write_bytes(b"\x89PNG\r\n\x00\xff")
    (folder / "zeros.md").write_bytes(bytes(100))
    (folder / "large.txt").write_text("a" * (MAX_SIZE_BYTES + 1), encoding="utf-8")
    (folder / "blank.md").write_text(" \n", encoding="utf-8")
    (folder / "ruler.md").write_text("\ufeff---\n", encoding="utf-8")
    (folder / "bread.md").write_bytes(b"\xff\xfe")
    (folder / "page.html").write_text("not a note", encoding="utf-8")
    (folder / ".hidden.md").write_text("hidden", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "log.txt").write_text("hidden", encoding="utf-8")
    changes = notes.sync()
    assert sorted(changes.skipped) == ["blank.md", "bread.md", "large.txt", "photo.md", "ruler.md", "zeros.md"]
    assert found(notes, "bread") == ["work/rates.txt"]
    assert found(notes, "?") == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_pipes_and_broken_links_are_no_notes(notes: Notes, folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    (folder / "link.md").symlink_to(folder / "nothing.md")
    changes = notes.sync()
    assert not changes
    assert not changes.skipped


def test_files_that_cannot_be_read_keep_their_text(notes: Notes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(path: Path, **_: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    (folder / "bread.md").write_text("changed", encoding="utf-8")
    (folder / "new.md").write_text("new", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", deny)
        changes = notes.sync()
    assert changes.skipped == dict.fromkeys(["bread.md", "new.md"], "Permission denied")
    assert found(notes, "sourdough")[0] == "bread.md"
    assert notes.sync().updated == ["bread.md"]


def test_notes_in_a_folder_that_cannot_be_listed_stay(
    notes: Notes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def deny(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == denied:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    denied = "work"
    monkeypatch.setattr(os, "scandir", deny)
    changes = notes.sync()
    assert (changes.removed, changes.skipped) == ([], {"work": "Permission denied"})
    denied = "notes"
    with pytest.raises(InputError, match="Permission denied; choose another folder"):
        notes.sync()
    assert len(notes) == 2


def test_missing_folder_is_an_error_and_keeps_the_index(notes: Notes, folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "unplugged")
    assert "is not a folder" in notes.refresh()
    assert len(notes) == 2
    with pytest.raises(InputError, match="is not a folder"):
        Notes(folder, tmp_path / "index")


def test_index_of_other_documents_is_refused(folder: Path, encoder: Encoder, tmp_path: Path) -> None:
    Index.build(encoder, ["a document"]).save(tmp_path / "index")
    with pytest.raises(InputError, match="an index of other documents"):
        Notes(folder, tmp_path / "index", encoder)


def test_index_cannot_be_inside_the_notes(folder: Path) -> None:
    with pytest.raises(InputError, match="is inside the notes"):
        Notes(folder, folder / ".index")


def test_index_is_never_saved_over_other_files(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.tex").touch()
    with pytest.raises(InputError, match="thesis"):
        notes.save()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_watcher_reports_every_kind_of_change_and_no_reading(folder: Path) -> None:
    calls: list[float] = []
    steps: list[Callable[[], object]] = [
        lambda: (folder / "new.md").write_text("new", encoding="utf-8"),
        lambda: (folder / "new.md").write_text("changed", encoding="utf-8"),
        lambda: (folder / "new.md").rename(folder / "work" / "moved.md"),
        lambda: (folder / "work").rename(folder / "office"),
        (folder / "office" / "moved.md").unlink,
    ]
    with FolderWatcher(folder, lambda: calls.append(time.monotonic()), quiet_s=0.05):
        wait_until(lambda: len(calls) == 1)  # at the start
        for step in steps:
            calls.clear()
            step()
            wait_until(lambda: bool(calls))


def test_watcher_ignores_reading_and_hidden_files(folder: Path) -> None:
    (folder / ".index").mkdir()
    calls: list[float] = []
    with FolderWatcher(folder, lambda: calls.append(time.monotonic()), quiet_s=0.01):
        wait_until(lambda: len(calls) == 1)
        (folder / "bread.md").read_text(encoding="utf-8")
        (folder / ".index" / "a.md").write_text("hidden", encoding="utf-8")
        time.sleep(0.1)
    assert len(calls) == 1


def test_watcher_calls_once_for_many_changes_and_not_too_late(folder: Path) -> None:
    calls: list[int] = []
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            (folder / "log.txt").write_text(str(number), encoding="utf-8")
            number += 1
            time.sleep(0.005)

    writer = threading.Thread(target=write)
    with FolderWatcher(folder, lambda: calls.append(1), quiet_s=10, max_delay_s=0.2):
        writer.start()
        wait_until(lambda: len(calls) >= 2)
        stop.set()
        writer.join()


def test_saved_index_follows_the_files_while_they_are_watched(open_notes: Callable[[], Notes], folder: Path) -> None:
    notes = open_notes()
    with FolderWatcher(folder, notes.refresh, quiet_s=0.02):
        wait_until(lambda: len(notes) == 2)
        (folder / "cat.md").write_text("The kitten sleeps all day.", encoding="utf-8")
        wait_until(lambda: found(notes, "young cat")[:1] == ["cat.md"])
        (folder / "cat.md").rename(folder / "kitten.md")
        wait_until(lambda: found(notes, "young cat")[:1] == ["kitten.md"])
        (folder / "kitten.md").unlink()
        wait_until(lambda: "kitten.md" not in found(notes, "young cat"))
    assert len(open_notes()) == 2


def test_watcher_looks_again_without_events(folder: Path) -> None:
    calls: list[int] = []
    with FolderWatcher(folder, lambda: calls.append(1), rescan_s=0.02):
        wait_until(lambda: len(calls) >= 3)


def run_app(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.note_search.app", *arguments]
    environment = {**os.environ, "HOME": str(home)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_query_on_the_terminal(folder: Path, tmp_path: Path) -> None:
    for added in (", 2 added", ""):
        done = run_app(tmp_path, str(folder), "--query", "bread")
        assert done.stderr == f"2 notes{added}\n"
        assert done.stdout.splitlines()[0].endswith(f"bread.md  {BREAD}")
    missing = run_app(tmp_path, str(folder / "nothing"), "--query", "bread")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: ")
    assert len(missing.stderr.splitlines()) == 1


@pytest.mark.slow
def test_window_shows_hits_and_follows_the_files(open_notes: Callable[[], Notes], folder: Path) -> None:
    tk = pytest.importorskip("tkinter")
    from examples.note_search.window import SearchWindow

    try:
        root = tk.Tk()
    except tk.TclError as error:
        pytest.skip(f"no display: {error}")
    window = SearchWindow(root, open_notes())

    def shows(place: int, name: str) -> bool:
        root.update()
        return str(window.results.get(place)) == name

    try:
        window.query.set("how to make bread")
        window.refresh()
        wait_until(lambda: shows(0, "bread.md"))
        assert window.preview.get("1.0", "end-1c") == BREAD
        assert window.status.cget("text") == "2 notes, 2 added"
        (folder / "bread.md").unlink()
        window.refresh()
        wait_until(lambda: shows(0, "work/rates.txt"))
    finally:
        root.destroy()
