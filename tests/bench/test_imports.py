import subprocess
import sys


def test_the_bench_imports_neither_edgeembed_nor_torch() -> None:
    code = "import sys, edgeembed_bench; print({'edgeembed', 'torch', 'pyJoules'} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
