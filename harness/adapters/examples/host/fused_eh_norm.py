"""An example of a kernel for dcpcheck: fused_eh_norm on the host, in Python, with the standard library alone.

    PYTHONPATH=harness/adapters/python dcpcheck run --backend host \
        --kernel 'exec:python3 harness/adapters/examples/host/fused_eh_norm.py' corpora/kernel-matrix/eh-norm-17.json
"""

import array
import math

import dcpcheck


def from_bf16(row):
    return memoryview(array.array("I", [bits << 16 for bits in row])).cast("B").cast("f").tolist()


def to_bf16(values):
    """To nearest, ties to even; NaN stays NaN."""
    words = memoryview(array.array("f", values)).cast("B").cast("I")
    return array.array("H", [0x7FC0 if word & 0x7FFFFFFF > 0x7F800000 else word + 0x7FFF + (word >> 16 & 1) >> 16 for word in words])


def fp32(values):
    """Rounded to fp32: Python's own numbers are fp64, and the contract's small squares vanish where fp32's do."""
    return array.array("f", values).tolist()


def norm(row, weight, eps, rounded):
    squares = math.fsum(fp32(x * x for x in row))
    [mean] = fp32([squares / len(row)])
    [under_root] = fp32([mean + eps])
    scale = 1 / math.sqrt(under_root) if under_root != 0 else math.inf
    normed = fp32(x * scale for x in row)
    if rounded:
        normed = from_bf16(to_bf16(normed))
    return to_bf16([x * w for x, w in zip(normed, weight)])


def run(launch):
    width = launch.scalar("hidden_size")
    rounded = launch.option("norm_round") == "bf16"
    positions = launch["positions"].flat()
    weight_of_embeds = from_bf16(launch["embeds_weight"].flat())
    weight_of_hidden = from_bf16(launch["hidden_weight"].flat())
    zeros = [0.0] * width
    for token in range(launch.scalar("T")):
        embeds = zeros if positions[token] == 0 else from_bf16(launch["embeds"].row(token))
        hidden = from_bf16(launch["previous_hidden"].row(token))
        out = launch["out"].row(token)
        out[:width] = norm(embeds, weight_of_embeds, launch.scalar("embeds_eps"), rounded)
        out[width:] = norm(hidden, weight_of_hidden, launch.scalar("hidden_eps"), rounded)


if __name__ == "__main__":
    dcpcheck.serve(
        op="fused_eh_norm",
        run=run,
        name="fused_eh_norm example in Python",
        doc="Standard library alone, a row after the other.",
        options={"norm_round": ["none", "bf16"], "division": ["rn", "full"]},
    )
