"""@title@

Made by `@command@` (dcpcheck @version@): the case @id@ of the op @op@, with all that a kernel is given and all that a
right one may answer. Put the call of your kernel into kernel(), and run `pytest FILE`, or `python3 FILE`. Needs nothing
but the standard library, and PyTorch or NumPy where kernel() asks for them.
"""

import array
import base64
import json
import math
import mmap
import struct
import sys
import zlib


def kernel(launch):
    """One launch on one rank: reads its inputs, and writes its outputs and caches in place, all of them in host memory.

    launch["q_c"].as_torch() is a tensor of that memory, .as_numpy() an array, .flat() a memoryview of all elements, .row(i)
    one of a row; launch["q_c"].shape, .strides (elements; of a cache bytes) and .dtype. bf16 without PyTorch is 16 bits, e4m3 8.
    launch.scalar("T") is a param or a size, launch.option("tile_scale") the contract option that the case asks for, launch.rank
    the rank. A kernel for the GPU is given copies, and what it leaves is copied back.

@tensors@
    """
    raise NotImplementedError("put the call of your kernel into kernel()")


# What follows judges it: every element that must be written is, on two fillings of memory, with a value that is right;
# nothing else is written.

SHOWN = 5  # wrong elements of a kind that are listed

#         bytes, struct, NumPy, PyTorch
DTYPES = {
    "u8": (1, "B", "uint8", "uint8"),
    "bf16": (2, "H", "uint16", "bfloat16"),
    "e4m3": (1, "B", "uint8", "float8_e4m3fn"),
    "fp32": (4, "f", "float32", "float32"),
    "i32": (4, "i", "int32", "int32"),
    "i64": (8, "q", "int64", "int64"),
}
FLOATS = ("bf16", "e4m3", "fp32")


class Tensor:
    """A view into the memory of a launch, as dcpcheck's Python client has it."""

    def __init__(self, plan, memory, begin):
        self.name, self.role, self.dtype = plan["name"], plan["role"], plan["dtype"]
        self.shape, self.strides = tuple(plan["shape"]), tuple(plan["strides"])
        self.itemsize, self._format, self._numpy, self._torch = DTYPES[self.dtype]
        self._memory, self._begin = memory, begin + plan["offset"] * self.itemsize

    @property
    def extent(self):
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))

    def flat(self):
        return memoryview(self._memory)[self._begin : self._begin + self.extent * self.itemsize].cast(self._format)

    def row(self, index):
        columns = math.prod(self.shape[1:])
        begin = index * self.strides[0]
        return self.flat()[begin : begin + columns]

    def as_numpy(self):
        import numpy

        if not self.extent:
            return numpy.empty(self.shape, self._numpy)
        strides = [stride * self.itemsize for stride in self.strides]
        return numpy.ndarray(self.shape, self._numpy, self._memory, self._begin, strides)

    def as_torch(self):
        import torch

        if not self.extent:
            return torch.empty(self.shape, dtype=getattr(torch, self._torch))
        count = self.extent * self.itemsize
        flat = torch.frombuffer(self._memory, dtype=torch.uint8, count=count, offset=self._begin)
        return flat.view(getattr(torch, self._torch)).as_strided(self.shape, self.strides)


class Launch:
    def __init__(self, number, rank, tensors):
        self.number, self.rank, self.tensors = number, rank, tensors
        self.device, self.threads, self.op, self.scalars = "host", 1, CASE["op"], CASE["scalars"]

    def __getitem__(self, name):
        return self.tensors[name]

    def __contains__(self, name):
        return name in self.tensors

    def scalar(self, name):
        return self.scalars[name]

    def option(self, name):
        return self.scalars["option." + name]


class Buffer:
    """The memory of one tensor, and of outputs in its place: before and after a run on each of two fillings."""

    def __init__(self, plan, index, rank):
        self.plan = plan
        self.size = plan["bytes"]
        self.guard = -(-max(4096, plan.get("block_stride", 0)) // 4096) * 4096
        self.holds_input = plan["role"] == "in"
        pattern = struct.pack("<H", 0x7F80 | 1 + index % 127)
        self.before, self.memory = [], []
        for filling in (pattern, bytes(byte ^ 0xFF for byte in pattern)):
            image = bytearray(filling * (self.guard + self.size // 2 + 1))[: self.guard + self.size] + filling * (self.guard // 2)
            if self.holds_input:
                image[self.guard : self.guard + self.size] = blob(plan["data"][rank if len(plan["data"]) > 1 else 0])
            for begin, record in plan.get("before", [[]] * CASE["tp"])[rank]:
                record = blob(record)
                image[self.guard + begin : self.guard + begin + len(record)] = record
            memory = mmap.mmap(-1, len(image))
            memory[:] = bytes(image)
            self.before.append(bytes(image))
            self.memory.append(memory)

    def keep(self):
        self.after = [memory[:] for memory in self.memory]

    def unwritten(self, byte):
        at = self.guard + byte
        return not self.holds_input and all(self.after[run][at] == self.before[run][at] for run in (0, 1))

    def bytes(self, begin, end, run=0):
        return self.after[run][self.guard + begin : self.guard + end]

    def untouched(self, begin, end):
        """The first byte of [begin, end) that either run changed, or None."""
        begin, end = begin + self.guard, end + self.guard
        for run in (0, 1):
            if self.after[run][begin:end] != self.before[run][begin:end]:
                return next(i for i in range(begin, end) if self.after[run][i] != self.before[run][i]) - self.guard
        return None


def blob(place):
    begin, size = place
    return RAW[begin : begin + size]


def numbers(place, kind):
    return array.array(kind, blob(place))


def code_of(chunk):
    return int.from_bytes(chunk, "little")


def place_of(code, bits):
    """Codes in the order of their values, -0 just before +0."""
    sign = 1 << bits - 1
    return -(code & sign - 1) - 1 if code & sign else code


def is_nan(code, dtype):
    if dtype == "e4m3":
        return code & 0x7F == 0x7F
    return code & 0x7FFF > 0x7F80 if dtype == "bf16" else dtype == "fp32" and code & 0x7FFFFFFF > 0x7F800000


def value_of(code, dtype):
    if dtype == "bf16":
        return struct.unpack("<f", struct.pack("<I", code << 16))[0]
    if dtype == "fp32":
        return struct.unpack("<f", struct.pack("<I", code))[0]
    if dtype == "e4m3":
        return math.nan if code & 0x7F == 0x7F else math.copysign(E4M3[code & 0x7F], -1 if code & 0x80 else 1)
    bits = 8 * DTYPES[dtype][0]
    return code - (1 << bits) if dtype in ("i32", "i64") and code >> bits - 1 else code


def shown(code, dtype):
    return f"0x{code:0{2 * DTYPES[dtype][0]}X} ({value_of(code, dtype):.9g})" if dtype in FLOATS else str(value_of(code, dtype))


def sets_shown(spans, nan, dtype):
    parts = [shown(low, dtype) if low == high else f"{shown(low, dtype)} to {shown(high, dtype)}" for low, high in spans]
    return " or ".join(parts + ["NaN"] * nan)


E4M3 = [m * 2.0**-9 if m < 8 else (8 + m % 8) * 2.0 ** (m // 8 - 10) for m in range(127)]


def fp32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def order_of_e4m3(value):
    """The nearest code's place among the codes, both zeros at 0; 0x7F past the largest one."""
    size = abs(value)
    if size >= 464:
        step = 0x7E if size == 464 else 0x7F  # halfway: to the even one
    else:
        low, high = 0, 126
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if E4M3[middle] <= size else (low, middle - 1)
        step = low
        if low < 126:
            rest, gap = size - E4M3[low], E4M3[low + 1] - E4M3[low]
            step += rest > gap / 2 or (rest == gap / 2 and low % 2 == 1)
    return -step if value < 0 else step


def codes_against(scale, value, error):
    """What the codes of an e4m3 element may be that is divided by a stored scale: spans of codes, and whether NaN may be one.

    `value` is within `error` of the element as fp32 before the division.
    """
    how, top, past = CASE["how"], 0x7E, 0x7F
    ranges, nan = [], False  # (low, high, +0, -0), zeros at 0

    def add_nan():
        nonlocal nan
        if how["clamp_nan"]:
            ranges.extend([(-top, -top, False, False), (top, top, False, False)])
        else:
            nan = True

    def add(low, high, plus, minus):
        nonlocal nan
        if how["saturate"]:
            low, high = max(-top, min(top, low)), max(-top, min(top, high))
        else:
            nan = nan or high >= past or low <= -past
            low, high = max(low, -top), min(high, top)
        if low <= high:
            ranges.append((low, high, plus, minus))

    if math.isinf(value) or error == 0:
        least = most = value
    elif not error < math.inf:
        least, most = -math.inf, math.inf
    else:
        reach = error + (abs(value) + error) * 2.0**-52
        least, most = value - reach, value + reach
    flip = math.copysign(1, scale) < 0
    if math.isnan(value) or math.isnan(scale):
        add_nan()
    elif math.isinf(scale):
        low, high = math.isinf(fp32(least)), math.isinf(fp32(most))
        if low or high:
            add_nan()
        if not (low and high and (least < 0) == (most < 0)):
            ranges.append((0, 0, least <= 0 if flip else most >= 0, most >= 0 if flip else least <= 0))
    elif scale == 0:
        if least <= 0 <= most:
            add_nan()
        if not ranges:
            if most > 0 if flip else least < 0:
                add(-past, -past, False, False)
            if least < 0 if flip else most > 0:
                add(past, past, False, False)
    else:
        low, high = (most / scale, least / scale) if flip else (least / scale, most / scale)
        if how["full_division"]:
            ulps = 4 * 2.0**-24 * (1 + 2.0**-20)
            low -= abs(low) * ulps if math.isfinite(low) else 0
            high += abs(high) * ulps if math.isfinite(high) else 0
        plus, minus = (least <= 0, most >= 0) if flip else (most >= 0, least <= 0)
        add(order_of_e4m3(fp32(low)), order_of_e4m3(fp32(high)), plus, minus)
    spans = []
    for low, high, plus, minus in ranges:
        first = 0x80 if low == 0 and minus else 0x80 | -low if low < 0 else low
        last = 0x80 if high == 0 and not plus else 0x80 | -high if high < 0 else high
        spans.append((first, last))
    return spans, nan


class Expected:
    """What is right of an output, or of a field of a cache's records: rows of elements."""

    def __init__(self, given):
        self.dtype, self.columns = given["dtype"], given["columns"]
        self.size = DTYPES[self.dtype][0]
        self.scaled = "value" in given
        if self.scaled:
            self.value, self.error = numbers(given["value"], "d"), numbers(given["error"], "d")
            self.others = {}
            for element, value, error in given["others"]:
                self.others.setdefault(element, []).append((float(value), float(error)))
            return
        self.codes = blob(given["codes"])
        self.wider = {}
        wider = numbers(given["wider"], "q")
        for element, low, high in zip(wider[0::3], wider[1::3], wider[2::3]):
            spans, nan = self.wider.get(element, ([], False))
            self.wider[element] = (spans, True) if low < 0 else (spans + [(low, high)], nan)

    def of(self, element, scale):
        """Spans of the codes that are right, and whether NaN is."""
        if not self.scaled:
            code = code_of(self.codes[element * self.size : (element + 1) * self.size])
            return self.wider.get(element, ([(code, code)], False))
        spans, nan = codes_against(scale, self.value[element], self.error[element])
        for value, error in self.others.get(element, []):
            more, also = codes_against(scale, value, error)
            spans, nan = spans + more, nan or also
        return spans, nan

    def admits(self, element, code, scale):
        if self.dtype in FLOATS and is_nan(code, self.dtype):
            return self.of(element, scale)[1]
        bits = 8 * self.size
        at = place_of(code, bits)
        return any(place_of(low, bits) <= at <= place_of(high, bits) for low, high in self.of(element, scale)[0])


class Findings:
    def __init__(self, rank):
        self.rank, self.lines, self.counts, self.compared, self.kept = rank, {}, {}, 0, 0

    def add(self, kind, where, what):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        lines = self.lines.setdefault(kind, [])
        if len(lines) < SHOWN:
            lines.append(f"    rank {self.rank}, {where}: {what}")

    def text(self):
        return "\n".join(f"{kind}: {self.counts[kind]}\n" + "\n".join(lines) for kind, lines in self.lines.items())


def scales_of(plan, field, slot, buffer):
    """The scales that the kernel stored in the record, or None where it did not write one of them."""
    scale = next(each for each in plan["fields"] if each["name"] == field["scaled_by"])
    size = scale["count"] * DTYPES[scale["dtype"]][0]
    rows = plan["kernel_block_size"]
    begin = slot // rows * plan["block_stride"] + scale["offset"]
    begin += slot % rows * (size if plan["planar"] else plan["record_bytes"])
    if any(buffer.unwritten(byte) for byte in range(begin, begin + size)):
        return None
    return array.array("f", buffer.bytes(begin, begin + size))


def judge_span(plan, buffer, expected, span, findings):
    begin, end, _, row, column, index, slot = span
    field = plan["fields"][index] if plan["role"] == "cache" else None
    name = plan["name"] + ("." + field["name"] if field else "")
    right = expected[name]
    size = right.size
    scales, tile = None, 1
    if right.scaled:
        scales, tile = scales_of(plan, field, slot, buffer), field["tile"]
    for at in range(begin, end, size):
        element = row * right.columns + column + (at - begin) // size
        where = f"row {row}" + (f" (slot {slot})" if field else "") + f", element {element - row * right.columns}"
        if any(buffer.unwritten(byte) for byte in range(at, at + size)):
            findings.add(f"{name}: never written", where, "holds what lay there before")
            continue
        code, other = code_of(buffer.bytes(at, at + size)), code_of(buffer.bytes(at, at + size, 1))
        if code != other and not buffer.holds_input:
            findings.add(
                f"{name}: not the same in two runs",
                where,
                f"{shown(code, right.dtype)}, then {shown(other, right.dtype)}: it depends on memory that nobody wrote, or on a race",
            )
            continue
        if right.scaled and scales is None:
            continue
        scale = scales[(at - begin) // size // tile] if scales else 1.0
        findings.compared += 1
        if not right.admits(element, code, scale):
            spans, nan = right.of(element, scale)
            findings.add(f"{name}: wrong", where, f"got {shown(code, right.dtype)}, right is {sets_shown(spans, nan, right.dtype)}")


def judge(rank):
    """Runs kernel() twice on the rank; returns what is wrong with what it left, as text, "" for nothing."""
    plans = CASE["tensors"]
    buffers = {plan["name"]: Buffer(plan, i, rank) for i, plan in enumerate(plans) if not plan["in_place_of"]}
    for run in (0, 1):
        views = {}
        for plan in plans:
            buffer = buffers[plan["in_place_of"] or plan["name"]]
            views[plan["name"]] = Tensor(plan, buffer.memory[run], buffer.guard)
        kernel(Launch(run, rank, views))
    given = CASE["expected"][rank if len(CASE["expected"]) > 1 else 0]
    expected = {name: Expected(each) for name, each in given.items()}
    findings = Findings(rank)
    for buffer in buffers.values():
        buffer.keep()
    for name, buffer in buffers.items():
        plan = next((each for each in plans if each["in_place_of"] == name), buffer.plan)
        flat = numbers(plan["spans"][rank], "q") if "spans" in plan else []
        spans = [flat[i : i + 7] for i in range(0, len(flat), 7)]
        last = -buffer.guard
        for span in spans + [[buffer.size + buffer.guard] * 7]:
            findings.kept += span[0] - last
            touched = buffer.untouched(last, span[0])
            if touched is not None:
                kind = "an input was written" if buffer.plan is plan and plan["role"] == "in" else "written where nothing may be"
                findings.add(f"{name}: {kind}", f"byte {touched}", f"the first that changed of {last} to {span[0]}")
            last = span[1]
        for span in spans:
            if span[2]:
                judge_span(plan, buffer, expected, span, findings)
    if findings.compared + findings.kept == 0:
        return "there was nothing to look at"
    return findings.text()


def pytest_generate_tests(metafunc):
    if "rank" in metafunc.fixturenames:
        metafunc.parametrize("rank", range(CASE["tp"]))


def test_kernel(rank):
    wrong = judge(rank)
    assert not wrong, f"{CASE['op']}, case {CASE['id']}\n{wrong}"


def load():
    raw = zlib.decompress(base64.b64decode(DATA))
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


DATA = """
@data@"""

CASE, RAW = load()

if __name__ == "__main__":
    found = [text for text in map(judge, range(CASE["tp"])) if text]
    print("\n".join(found) or f"{CASE['op']}, case {CASE['id']}: right on {CASE['tp']} ranks")
    sys.exit(1 if found else 0)
