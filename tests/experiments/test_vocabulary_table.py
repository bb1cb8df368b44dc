"""Tables of vocabularies."""

import json
from pathlib import Path

from click.testing import CliRunner

from experiments.xayn.vocabulary_table import main


def report(folder: Path, name: str, english: float, german: float, existing: float = 2.0) -> Path:
    languages = [
        {
            "language": language,
            "coverage": {
                f"build/{name}.json": {"tokens_per_word": tokens},
                "build/existing.json": {"tokens_per_word": existing},
            },
        }
        for language, tokens in (("en", english), ("de", german))
    ]
    file = folder / f"{name}.report"
    file.write_text(json.dumps({"path": f"build/{name}.json", "languages": languages}))
    return file


def test_a_row_has_each_vocabulary_and_the_one_that_the_first_report_compares_with(tmp_path: Path) -> None:
    files = [report(tmp_path, "50000-0.7", 1.4, 1.6), report(tmp_path, "100000-0.7", 1.3, 1.5, existing=2.5)]
    out = tmp_path / "all.json"
    output = CliRunner().invoke(main, [*map(str, files), "--out", str(out)], catch_exceptions=False).output
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines()]
    assert rows[0] == ["language", "50000-0.7", "100000-0.7", "existing"]
    assert rows[2:] == [["en", "1.40", "1.30", "2.00"], ["de", "1.60", "1.50", "2.00"]]
    assert list(json.loads(out.read_text())) == ["50000-0.7", "100000-0.7"]
