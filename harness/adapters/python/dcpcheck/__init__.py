"""A kernel in Python for dcpcheck, in a process of its own: `dcpcheck run --kernel 'exec:python3 mine.py' CASE`.

    import dcpcheck

    def run(launch):
        out = launch["out"].as_torch()
        ...

    dcpcheck.serve(op="fused_eh_norm", run=run, options={"norm_round": ["none", "bf16"]})

Needs nothing but the standard library; NumPy and PyTorch are used where as_numpy() and as_torch() are called.
"""

from dcpcheck.captures import CaptureError, capture
from dcpcheck.checks import check
from dcpcheck.launch import Launch, Tensor
from dcpcheck.poison import poisoned
from dcpcheck.program import ProgramError
from dcpcheck.server import PROTOCOL, Skip, claim_stdout, serve

__all__ = [
    "PROTOCOL",
    "CaptureError",
    "Launch",
    "ProgramError",
    "Skip",
    "Tensor",
    "capture",
    "check",
    "claim_stdout",
    "poisoned",
    "serve",
]
