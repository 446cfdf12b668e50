"""What is right of insert_mxfp4, for dcpcheck --ops: exact bytes, in Python with the standard library alone.

A reference is spoken to as a kernel is. In the place of each field of the cache it is given what the op's "told" names there:
kv_cache.codes.exact and kv_cache.scales.exact, a row a token, whichever rank stores it.

    PYTHONPATH=harness/adapters/python dcpcheck run --backend host --ops harness/adapters/examples/insert_mxfp4 \
        --kernel lib:./insert_mxfp4.so CASE
"""

import functools
import math
import struct

import dcpcheck

VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


@functools.lru_cache(maxsize=None)
def from_bf16(bits):
    return struct.unpack("f", struct.pack("I", bits << 16))[0]


@functools.lru_cache(maxsize=1 << 16)
def code_of(value):
    """The nearest of VALUES; of two that are equally near, the one with an even code. All in fp64, and exact."""
    nearest = min(range(8), key=lambda code: (abs(abs(value) - VALUES[code]), code % 2))
    return nearest | (8 if math.copysign(1, value) < 0 else 0)


def tile(values):
    """The scale's byte, and the codes, two a byte."""
    if not all(map(math.isfinite, values)):
        return 255, bytes(16)
    largest = max(map(abs, values))
    exponent = max(math.frexp(largest)[1] - 1 - 2, -127) if largest else -127
    codes = [code_of(math.ldexp(value, -exponent)) for value in values]
    return exponent + 127, bytes(even | odd << 4 for even, odd in zip(codes[::2], codes[1::2]))


def run(launch):
    for token in range(launch.scalar("T")):
        row = [from_bf16(bits) for bits in launch["rows"].row(token)]
        scales = launch["kv_cache.scales.exact"].row(token)
        codes = launch["kv_cache.codes.exact"].row(token)
        for i in range(launch.scalar("width") // 32):
            scales[i], codes[16 * i : 16 * i + 16] = tile(row[32 * i : 32 * i + 32])


if __name__ == "__main__":
    dcpcheck.serve(op="insert_mxfp4", run=run, name="reference of insert_mxfp4")
