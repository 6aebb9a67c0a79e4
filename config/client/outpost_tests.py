"""A pytest plugin for experiments: it runs only the tests that $OUTPOST_TESTS names, and all tests where that is not set.

    PYTHONPATH=FOLDER-OF-THIS-FILE python3 -m pytest -p outpost_tests --junitxml=report.xml …

The file has one test in a line, as `suite/name`, under the names that Outpost read from pytest's JUnit XML. The names are
only compared with those of the collected tests. They never become part of a command line or of an expression, so a name
cannot do harm, whatever it holds. Without a test in common pytest ends with its exit code 5.
"""

import os

from _pytest.junitxml import bin_xml_escape, mangle_test_address

SUITE_BYTES, NAME_BYTES = 128, 256  # Outpost cuts longer names


def pytest_collection_modifyitems(config, items):
    path = os.environ.get("OUTPOST_TESTS")
    if not path:
        return
    with open(path, encoding="utf-8", newline="\n") as file:
        wanted = {line.rstrip("\n") for line in file}
    chosen = [item for item in items if _name_of(config, item) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _name_of(config, item):
    """SUITE/CLASSNAME.NAME, as the JUnit file has them."""
    *classes, name = mangle_test_address(item.nodeid)
    prefix = config.getoption("junitprefix", None)
    classname = ".".join([prefix, *classes] if prefix else classes)
    suite = config.getini("junit_suite_name")
    name = str(bin_xml_escape(name))
    return f"{_cut(suite, SUITE_BYTES)}/{_cut(f'{classname}.{name}' if classname not in ('', suite) else name, NAME_BYTES)}"


def _cut(text, limit):
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
