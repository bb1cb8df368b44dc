"""The subjects and reports of the benchmark's tests."""

from ...bench.conftest import make_report, stub  # noqa: F401, TID252  # tests are not a package
