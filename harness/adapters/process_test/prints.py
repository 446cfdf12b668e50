"""What the client makes of a kernel that prints, raises and skips, by the width of the rows."""

import os
import sys

import dcpcheck


def run(launch):
    width = launch.scalar("hidden_size")
    print("a line on stdout")
    os.system("echo a line of a command")
    if width == 1:
        raise dcpcheck.Skip("rows of 1")
    if width == 2:
        raise ValueError("rows of 2\nand more")
    if width == 3:
        sys.exit(4)
    if width == 4:
        launch["nothing"]
    if width == 5:
        launch["out"].row(7)


dcpcheck.serve(
    op="fused_eh_norm",
    run=run,
    name="prints",
    options={"division": "rn"},
    tensors=["positions", "embeds", "embeds_weight", "previous_hidden", "hidden_weight", "out"],
    requirements=["T > 0", ("hidden_size < 100", "short rows")],
)
