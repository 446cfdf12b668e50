"""Serves a function that dcpcheck.check() decorates: python3 -m dcpcheck.kernel_process MODULE FILE NAME."""

import importlib
import importlib.util
import operator
import os
import sys

from dcpcheck.server import claim_stdout


def load(module, file):
    """The module, by its name where that leads to `file`, else from the file."""
    try:
        if module != "__main__":
            found = importlib.util.find_spec(module)
            if found is not None and found.origin and os.path.realpath(found.origin) == os.path.realpath(file):
                return importlib.import_module(module)
    except ImportError:
        pass  # a package that pytest imported without its parents
    spec = importlib.util.spec_from_file_location("dcpcheck_kernel_module", file)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def main():
    claim_stdout()
    module, file, name = sys.argv[1:]
    operator.attrgetter(name)(load(module, file)).dcpcheck.serve()


if __name__ == "__main__":
    main()
