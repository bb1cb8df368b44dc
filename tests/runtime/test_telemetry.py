"""The telemetry of ONNX Runtime is off: it writes no identifier to the home folder."""

import os
import subprocess
import sys
from pathlib import Path

_ENCODING = """
import sys
from edgeembed_runtime import Encoder
Encoder.load(sys.argv[1]).encode("the cat")
"""


def _run(code: str, bundle: Path, home: Path, **variables: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_DATA_HOME": str(home)} | variables
    subprocess.run([sys.executable, "-c", code, bundle], check=True, env=environment)


def test_encoding_writes_no_identifier_to_the_home_folder(bundle_path: Path, tmp_path: Path) -> None:
    _run(_ENCODING, bundle_path, tmp_path)
    assert list(tmp_path.rglob("*")) == []


def test_telemetry_that_the_application_enabled_stays_enabled(bundle_path: Path, tmp_path: Path) -> None:
    code = _ENCODING + "import os\nassert os.environ['ORT_DISABLE_TELEMETRY'] == 'asked'"
    _run(code, bundle_path, tmp_path, ORT_DISABLE_TELEMETRY="asked")
