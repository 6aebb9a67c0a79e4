"""A pytest plugin that writes an Outpost report (version 1): suite, test, dtype, status, message,
trace and numbers with units, which JUnit XML has no place for. Copy it into any suite:

    pytest -p outpost_report --outpost-report=results/outpost.json

A test says where it belongs with @pytest.mark.outpost(suite="model", name="llama3"); without it the
suite is `unit` and the name is the function's. A measured number is left with
`record_number(value, unit)`.

In an experiment, where $OUTPOST_TESTS names a file with one `suite/name` a line, only these tests run. The names are
compared and never executed.
"""

import json
import math
import os

import pytest

SUITE_BYTES, NAME_BYTES, MESSAGE_BYTES, TRACE_BYTES = 128, 256, 1024, 4096  # Outpost cuts what is longer
NUMBER = "outpost.number"


def pytest_addoption(parser):
    parser.addoption("--outpost-report", metavar="FILE", help="write an Outpost report to FILE")


def pytest_configure(config):
    config.addinivalue_line("markers", "outpost(suite, name): where the result belongs")
    config.outpost_environment = getattr(config, "outpost_environment", {})
    path = config.getoption("--outpost-report")
    if path and not hasattr(config, "workerinput"):  # of pytest-xdist's processes only the first one writes
        config.pluginmanager.register(Writer(config, path), "outpost-report-writer")


def pytest_collection_modifyitems(config, items):
    path = os.environ.get("OUTPOST_TESTS")
    if not path:
        return
    with open(path, encoding="utf-8", newline="\n") as file:
        wanted = {line.rstrip("\n") for line in file}
    chosen = [item for item in items if _line_of(item) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Where it belongs goes with the report, also from a worker of pytest-xdist."""
    outcome = yield
    outcome.get_result().outpost_place = _place_of(item)


@pytest.fixture
def record_number(request):
    """record_number(31.2, "tokens/s"): what was measured, beside passed or failed."""

    def record(value, unit):
        if not math.isfinite(value):
            raise ValueError(f"{value} {unit} is no measurement")
        request.node.user_properties.append((NUMBER, {"value": float(value), "unit": unit}))

    return record


def _cut(text, limit):
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


class Writer:
    def __init__(self, config, path):
        self.config, self.path, self.tests = config, path, {}

    def _entry(self, report):
        suite, name, dtype = getattr(report, "outpost_place", None) or ("unit", report.nodeid, None)
        # `--dist=each` runs a test once on each worker: two results, and the worst is shown.
        worker = getattr(getattr(getattr(report, "node", None), "gateway", None), "id", None)
        entry = self.tests.setdefault((report.nodeid, worker), {"suite": suite, "name": name, "status": "MISS", "duration": 0.0})
        if dtype:
            entry["dtype"] = dtype
        return entry

    def pytest_runtest_logreport(self, report):
        entry = self._entry(report)
        entry["duration"] = round(entry["duration"] + report.duration, 4)
        number = dict(report.user_properties).get(NUMBER)
        if number:
            entry["number"] = number
        if report.skipped:
            self._say(entry, "SKIP", _skip_reason(report), "")
        elif report.failed:
            # A failing call is the code's fault, a failing set-up or clean-up the test's own.
            status = "FAIL" if report.when == "call" else "ERROR"
            self._say(entry, status, _first_line(report), str(report.longrepr))
        elif report.when == "call":
            self._say(entry, "DONE" if entry["suite"] == "benchmark" else "PASS", "", "")

    def pytest_collectreport(self, report):
        """A file that cannot be loaded has tests that nobody ran."""
        if report.failed:
            self._say(self.tests.setdefault((report.nodeid, None), {"suite": "unit", "name": report.nodeid or "collection", "status": "MISS"}), "ERROR", _first_line(report), str(report.longrepr))

    @staticmethod
    def _say(entry, status, message, trace):
        if entry["status"] in ("FAIL", "ERROR"):
            return  # what is red stays red, whatever comes behind it
        entry["status"] = status
        if message:
            entry["message"] = _cut(message, MESSAGE_BYTES)
        if trace:
            entry["trace"] = _cut(trace[-TRACE_BYTES:], TRACE_BYTES)

    def pytest_sessionfinish(self):
        document = {"schema": 1, "environment": self.config.outpost_environment, "tests": list(self.tests.values())}
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
            f.write("\n")
        os.replace(self.path + ".new", self.path)  # a killed run leaves no half report


def _place_of(item):
    """(suite, name, dtype)"""
    mark = item.get_closest_marker("outpost")
    given = mark.kwargs if mark else {}
    dtype = getattr(item, "callspec", None) and item.callspec.params.get("dtype_name")
    return given.get("suite", "unit"), given.get("name") or _name_of(item, dtype), dtype


def _line_of(item):
    """As in $OUTPOST_TESTS: a test with several dtypes is there once."""
    suite, name, _ = _place_of(item)
    return f"{_cut(suite, SUITE_BYTES)}/{_cut(name, NAME_BYTES)}"


def _name_of(item, dtype):
    """test_add[fp32-3] → add[3]: the dtype has a field of its own."""
    name = item.name[len("test_"):] if item.name.startswith("test_") else item.name
    if "[" not in name:
        return name
    base, rest = name[:-1].split("[", 1)
    parts = [p for p in rest.split("-") if p != dtype]
    return f"{base}[{'-'.join(parts)}]" if parts else base


def _skip_reason(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason[len("Skipped: "):] if reason.startswith("Skipped: ") else reason


def _first_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return text.splitlines()[0] if text else "failed without a message"
