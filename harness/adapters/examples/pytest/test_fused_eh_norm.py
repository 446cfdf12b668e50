"""An example of a test by dcpcheck: the kernel in Python that lies beside it, in ../host.

    DCPCHECK=build/release/bin/dcpcheck PYTHONPATH=harness/adapters/python \
        python3 -m pytest -p dcpcheck.pytest_plugin harness/adapters/examples/pytest
"""

import pathlib
import sys

import dcpcheck

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "host"))

import fused_eh_norm  # noqa: E402


@dcpcheck.check(
    op="fused_eh_norm",
    cases=200,
    options={"norm_round": ["none", "bf16"], "division": ["rn", "full"]},
    requirements=[("T * hidden_size <= 4000", "plain Python is slow")],
)
def test_fused_eh_norm(launch):
    fused_eh_norm.run(launch)
