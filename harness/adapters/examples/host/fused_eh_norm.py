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
    return array.array("H", [(word + 0x7FFF + (word >> 16 & 1)) >> 16 if word & 0x7FFFFFFF <= 0x7F800000 else 0x7FC0 for word in words])


def norm(row, weight, eps, rounded):
    under_root = math.fsum(x * x for x in row) / len(row) + eps
    scale = 1 / math.sqrt(under_root) if under_root != 0 else math.inf
    normed = [x * scale for x in row]
    if rounded:
        normed = from_bf16(to_bf16(normed))
    return to_bf16([x * w for x, w in zip(normed, weight)])


def run(launch):
    width = launch["hidden_size"]
    rounded = launch.option("norm_round") == "bf16"
    positions = launch["positions"].flat()
    weight_of_embeds = from_bf16(launch["embeds_weight"].flat())
    weight_of_hidden = from_bf16(launch["hidden_weight"].flat())
    zeros = [0.0] * width
    for token in range(launch["T"]):
        embeds = zeros if positions[token] == 0 else from_bf16(launch["embeds"].row(token))
        hidden = from_bf16(launch["previous_hidden"].row(token))
        out = launch["out"].row(token)
        out[:width] = norm(embeds, weight_of_embeds, launch["embeds_eps"], rounded)
        out[width:] = norm(hidden, weight_of_hidden, launch["hidden_eps"], rounded)


if __name__ == "__main__":
    dcpcheck.serve(
        op="fused_eh_norm",
        run=run,
        name="fused_eh_norm example in Python",
        doc="Standard library alone, a row after the other.",
        options={"norm_round": ["none", "bf16"], "division": ["rn", "full"]},
    )
