"""The example, with the epsilon of embeds left out."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "host"))

import fused_eh_norm

import dcpcheck


def run(launch):
    launch.scalars["embeds_eps"] = 0
    fused_eh_norm.run(launch)


dcpcheck.serve("fused_eh_norm", run, options={"norm_round": ["none", "bf16"], "division": ["rn", "full"]})
