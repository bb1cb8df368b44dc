"""MkDocs hook: include pages that lie outside docs/, and mend the links between pages and files of the repository."""

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[2]
_LOG = logging.getLogger("mkdocs.hooks.pages")

# Files of the repository that are pages of the site too, by their place in it.
_INCLUDED = {
    "runtime/README.md": "runtime.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    **{
        f"edgeembed/papers/{paper}/README.md": f"recipes/{paper}.md"
        for paper in ("simtde", "hpd", "distilcse", "cmow", "xayn")
    },
    "examples/note_search/README.md": "examples/note_search.md",
    "examples/search_service/README.md": "examples/search_service.md",
    "runtime/edgeembed_runtime/models/mini/README.md": "models/mini.md",
    "runtime/edgeembed_runtime/models/nano/README.md": "models/nano.md",
    "runtime/edgeembed_runtime/models/micro/README.md": "models/micro.md",
    "README.md": "index.md",
}
_SOURCES = {page: source for source, page in _INCLUDED.items() if source != "README.md"}

_LINK = re.compile(r"(?<=\]\()(?!#|\w+:)([^)\s#]+)")
# The runtime's README is also PyPI's page, where a link into the repository would not work.
_MENTION = re.compile(r"`docs/([\w./-]+\.md)`(?:\s+in\s+the\s+repository)?")
_FENCE = re.compile(r"^(```.*?^```[ ]*$)", flags=re.MULTILINE | re.DOTALL)
_EMPTY_HEADER = re.compile(r"<th([^>]*)></th>")
_TITLE = re.compile(r"^# (.+)$", flags=re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", flags=re.DOTALL)

# In the cards of built-in encoders, which are loaded by name.
_CARD_PATH = 'Encoder.load("path/to/this/folder", verify=True)'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the included pages."""
    for page, source in _SOURCES.items():
        text = _FRONT_MATTER.sub("", (_ROOT / source).read_text(encoding="utf-8"))
        if page.startswith("models/"):
            text = text.replace(_CARD_PATH, f'Encoder("{Path(page).stem}")')
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Rewrite links to files of the repository as links to their pages, or to the repository."""
    place = page.file.src_uri
    source = _SOURCES.get(place, f"docs/{place}")

    def rewritten(link: re.Match[str]) -> str:
        return _target(link[1], source, place, config)

    def linked(mention: re.Match[str]) -> str:
        return f"[{_title(mention[1])}]({posixpath.relpath(mention[1], posixpath.dirname(place) or '.')})"

    parts = []
    for part, is_code in _parts(markdown):
        if is_code:
            parts.append(part)
        else:
            text = _LINK.sub(rewritten, part)
            parts.append(_MENTION.sub(linked, text) if place in _SOURCES else text)
    return "".join(parts)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Make empty header cells of tables plain cells: a screen reader would announce a header without a name."""
    return _EMPTY_HEADER.sub(r"<td\1></td>", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Name the theme's search dialog for screen readers."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def _parts(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield the text between code blocks, and the code blocks."""
    for number, part in enumerate(_FENCE.split(markdown)):
        yield part, number % 2 == 1


def _title(page: str) -> str:
    """Return the title of a page in docs/."""
    heading = _TITLE.search((_ROOT / "docs" / page).read_text(encoding="utf-8"))
    return page if heading is None else heading[1]


def _target(link: str, source: str, place: str, config: MkDocsConfig) -> str:
    """Return what a link of a file of the repository becomes on the page at a place of the site."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if path in _INCLUDED:
        path = f"docs/{_INCLUDED[path]}"
    elif not path.startswith("docs/"):
        if not (_ROOT / path).exists():
            _LOG.warning("%s links to %s, which does not exist; expected a file of the repository", source, link)
        return f"{config.extra['repository']}/{path}"
    return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(place) or ".")
