"""The page in Chromium, on a phone and on a desktop, in light and dark."""

import base64
import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_bench.report import BenchmarkReport
from PIL import Image

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium; run as root: apt-get install chromium"),
]

Pixels = npt.NDArray[np.uint8]
WIDTHS = {"phone": 360, "larger phone": 390, "desktop": 1280}
# Elements that reach beyond the right edge of the page; a table may, inside its own scrolling box.
OUTSIDE = """
[...document.querySelectorAll("body *")]
  .filter((element) => !element.closest(".wide table"))
  .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map((element) => element.outerHTML.slice(0, 80))
"""
# Replaces the visible images of plots by their SVG elements, of the same size, whose text can be measured.
INLINE = """
[...document.querySelectorAll("figure img")].filter((image) => image.getBoundingClientRect().width).map((image) => {
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (letter) => letter.charCodeAt(0));
  const svg = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
  const box = image.getBoundingClientRect();
  svg.style.width = box.width + "px";
  svg.style.height = box.height + "px";
  image.replaceWith(document.importNode(svg, true));
}).length
"""
# Text of plots: its size in pixels of the screen, and by how much it reaches beyond its plot.
TEXTS = """
[...document.querySelectorAll("figure svg text")].map((text) => {
  const box = text.getBoundingClientRect(), plot = text.closest("svg").getBoundingClientRect();
  const scale = text.ownerSVGElement.getScreenCTM().a;
  return {
    text: text.textContent,
    size: parseFloat(getComputedStyle(text).fontSize) * scale,
    outside: Math.max(plot.left - box.left, box.right - plot.right, plot.top - box.top, box.bottom - plot.bottom),
    plot: [...document.querySelectorAll("figure svg")].indexOf(text.closest("svg")),
    box: [box.left, box.top, box.right, box.bottom],
  };
})
"""
# Color schemes of the visible images.
SCHEMES = """
[...document.querySelectorAll("img")]
  .filter((image) => image.getBoundingClientRect().width)
  .map((image) => image.className)
"""


class Browser:
    """Headless Chromium, driven through a pipe by the DevTools protocol."""

    def __init__(self, profile: Path) -> None:
        (read_questions, write_questions), (read_answers, write_answers) = os.pipe(), os.pipe()
        # Chromium reads from 3 and writes to 4. Its own sandbox needs rights that root in a container lacks.
        start = f'exec "$@" 3<&{read_questions} 4>&{write_answers}'
        options = ["--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["bash", "-c", start, "chromium", str(CHROMIUM), *options, "about:blank"],
            pass_fds=(read_questions, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_questions)
        os.close(write_answers)
        self._questions = os.fdopen(write_questions, "wb", buffering=0)
        self._answers = os.fdopen(read_answers, "rb", buffering=0)
        self._unread = b""
        self._asked = 0
        self._session: dict[str, str] = {}
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        self.ask("Network.enable")
        self.ask("Page.enable")

    def ask(self, method: str, **params: Any) -> Any:
        self._asked += 1
        question = {"id": self._asked, "method": method, "params": params} | self._session
        self._questions.write(json.dumps(question).encode() + b"\0")
        while (answer := self._next()).get("id") != self._asked:
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, page: Path, width: int, scheme: str) -> None:
        self.requests.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 1000
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=page.as_uri())
        deadline = time.monotonic() + 30
        while self.value("document.readyState") != "complete" or self.value("location.href") != page.as_uri():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def screenshot(self) -> Pixels:
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        png = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with Image.open(io.BytesIO(base64.b64decode(png))) as image:
            return np.asarray(image.convert("RGB"))

    def close(self) -> None:
        self._questions.close()
        self._answers.close()
        self._process.terminate()
        self._process.wait(timeout=30)

    def _next(self) -> Any:
        while b"\0" not in self._unread:
            piece = self._answers.read(1 << 20)
            assert piece, "Chromium ended"
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module", params=["two", "seven", "bare", "long names"])
def page(request: pytest.FixtureRequest, make_report: Callable[..., BenchmarkReport], tmp_path_factory: Any) -> Path:
    report = {
        "two": lambda: make_report(2),
        "seven": lambda: make_report(7),
        "bare": lambda: make_report(2, processes=3, bare=True),
        "long names": lambda: make_report(7, processes=2, names=tuple(f"{number}-{'W' * 70}" for number in range(7))),
    }[request.param]()
    file: Path = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report.to_html(), encoding="utf-8")
    return file


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> int:
    return WIDTHS[request.param]


def test_page_never_scrolls_sideways_and_loads_no_other_files(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width, "light")
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.value(OUTSIDE) == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


def test_text_of_plots_is_legible_and_does_not_overlap(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width, "light")
    assert browser.value(INLINE)
    texts = browser.value(TEXTS)
    assert texts
    assert min(text["size"] for text in texts) >= 11
    assert max(text["outside"] for text in texts) <= 3  # the blank around an accent or below a comma
    overlaps = [
        (one["text"], other["text"])
        for number, one in enumerate(texts)
        for other in texts[number + 1 :]
        if one["plot"] == other["plot"] and overlap(one["box"], other["box"])
    ]
    assert overlaps == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_follows_the_color_scheme_with_contrast(browser: Browser, page: Path, width: int, scheme: str) -> None:
    browser.open(page, width, scheme)
    assert set(browser.value(SCHEMES)) == {scheme}
    brightness = browser.screenshot().mean(axis=2)
    paper = brightness[:8].mean()
    assert paper > 240 if scheme == "light" else paper < 40
    strong = np.abs(brightness - paper) > 150
    assert 0.003 < strong.mean() < 0.2
    # Every screenful has text.
    assert all(strong[top : top + 800].any() for top in range(0, len(strong) - 400, 400))


def test_prints_on_white_in_either_color_scheme(browser: Browser, page: Path) -> None:
    browser.open(page, 1280, "dark")
    pdf = base64.b64decode(browser.ask("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")
    browser.ask(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.value('getComputedStyle(document.querySelector("img.dark")).display') == "none"
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.body).color") == "rgb(29, 31, 35)"


def overlap(one: list[float], other: list[float]) -> bool:
    # Lines of a legend stand as close as lines of text: their boxes touch, their letters do not.
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > 1 and down > 4
