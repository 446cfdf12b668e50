"""The pytest plugin: collects what dcpcheck.check() decorates, whatever its name, and has options of its own."""

import pytest

from dcpcheck import checks

_config = None


def pytest_addoption(parser):
    group = parser.getgroup("dcpcheck", "kernels under dcpcheck")
    group.addoption("--dcpcheck", metavar="PROGRAM", help="the dcpcheck executable; default: $DCPCHECK, or the one on PATH")
    group.addoption("--dcpcheck-cases", metavar="N", type=int, help="draw N cases, whatever a check says")
    group.addoption("--dcpcheck-seed", metavar="SEED", help="draw the cases of this seed")


def pytest_configure(config):
    global _config
    _config = config


def given():
    """--dcpcheck-cases, --dcpcheck-seed and --dcpcheck, each None where it was not given."""
    if _config is None:
        return None, None, None
    return _config.getoption("--dcpcheck-cases"), _config.getoption("--dcpcheck-seed"), _config.getoption("--dcpcheck")


def pytest_pycollect_makeitem(collector, name, obj):
    made = getattr(obj, "dcpcheck", None)
    if not isinstance(made, checks.Check) or collector.funcnamefilter(name):
        return None  # pytest collects the latter by itself
    if obj.__module__ != collector.getparent(pytest.Module).obj.__name__:
        return None  # imported from where it is collected
    return pytest.Function.from_parent(collector, name=name, callobj=obj)
