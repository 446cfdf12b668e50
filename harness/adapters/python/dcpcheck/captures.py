"""Cases from production: @dcpcheck.capture(...) writes what a call was given as a case that `dcpcheck run` takes."""

import ctypes
import functools
import hashlib
import inspect
import json
import os
import random
import re
import sys
import tempfile
import threading
import time

from dcpcheck import program

# By the names that NumPy, PyTorch and memoryview have for element types; 8 and 16 bits without a sign may be codes.
_DTYPES = {
    "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float32": "fp32", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "bf16", "f": "fp32", "i": "i32", "q": "i64", "l": "i64", "B": "u8", "H": "bf16",
}  # fmt: skip
_SIZES = {"u8": 1, "bf16": 2, "e4m3": 1, "fp32": 4, "i32": 4, "i64": 8}
_MOST_BYTES = 1 << 20  # of a case file
_RESIDENT = 1 << 30  # a cache of more bytes becomes a sparse one


class CaptureError(Exception):
    """The call cannot be said as a case of the op: a sentence."""


class _View:
    """What is asked of a tensor, whether it is PyTorch's, NumPy's, or anything that memoryview takes."""

    def __init__(self, name, value):
        self.name, self.value = name, value
        self.torch = hasattr(value, "data_ptr") and hasattr(value, "stride")
        held = value if self.torch or hasattr(value, "strides") else memoryview(value)
        self.held = held
        self.shape = tuple(int(n) for n in held.shape)
        dtype = getattr(held, "dtype", None)
        name_of_dtype = str(dtype).rsplit(".", 1)[-1] if dtype is not None else held.format
        self.dtype = _DTYPES.get(name_of_dtype)
        if self.dtype is None:
            raise CaptureError(f"{name} is of {name_of_dtype}, which no tensor of an op is")
        if self.torch:
            self.strides = tuple(int(n) for n in held.stride())
            self.itemsize = held.element_size()
        else:
            self.itemsize = held.itemsize
            self.strides = tuple(n // self.itemsize for n in held.strides)
        self.bytes_per_element = self.itemsize

    def address(self):
        if self.torch:
            return self.held.data_ptr()
        where = getattr(self.held, "__array_interface__", None)
        if where is not None:
            return where["data"][0]
        flat = memoryview(self.held)
        return None if flat.readonly or flat.nbytes == 0 else ctypes.addressof(ctypes.c_char.from_buffer(flat))

    def integers(self):
        values = self.held.tolist()
        return [int(n) for n in values]

    def dense_bytes(self):
        """The elements in C order."""
        if self.torch:
            whole = self.held.detach().contiguous().cpu()
            return ctypes.string_at(whole.data_ptr(), whole.numel() * self.itemsize) if whole.numel() else b""
        return self.held.tobytes()


def _op_document(op):
    """The op.json of `op`: a file's name, or an op's, of which the executable is asked."""
    if os.fspath(op).endswith(".json"):
        with open(op, encoding="utf-8") as file:
            return json.load(file)
    done = program.run(["ops", op, "--json", "-"])
    if done.returncode != 0:
        raise CaptureError(done.stderr.strip() or f"dcpcheck ops {op} ended with {done.returncode}")
    return json.loads(done.stdout)


def _runs(positions, live):
    """Requests whose tokens lie at these positions: each run of consecutive ones is one."""
    batch = []
    for i in range(live):
        if batch and positions[i] == positions[i - 1] + 1:
            batch[-1]["uncached"] += 1
            continue
        if positions[i] < 0:
            raise CaptureError(f"token {i} is at position {positions[i]}: is it padding? then say how many tokens are live")
        batch.append({"cached": positions[i], "uncached": 1})
    return batch


def _set_equal(params, name, value, who):
    """A param's value; two tensors must not say two things of it."""
    if params.setdefault(name, value) != value:
        raise CaptureError(f"{name} is {params[name]}, but {value} by the shape of {who}")


class Call:
    """A call as a case: what build() makes of the op's tensors that were bound, by name, and of what else is known."""

    def __init__(self, op, bound, params=None, contract=None):
        self.op, self.bound = op, bound
        self.params, self.contract = dict(params or {}), dict(contract or {})
        self.specs = {tensor["name"]: tensor for tensor in op["tensors"]}
        known = set(self.specs) | set(op.get("params", {})) | {"live", "query_start_loc"}
        self.unknown = sorted(set(bound) - known)
        self.views = {
            name: _View(name, value)
            for name, value in bound.items()
            if value is not None and name in self.specs and not isinstance(value, (bool, int, float, str))
        }
        self.notes = []

    def build(self):
        """The value of "case", without a seed."""
        self._read_params()
        tokens = self._tokens()
        live = int(self.bound.get("live", tokens))
        if not 0 <= live <= tokens:
            raise CaptureError(f"live is {live}, but the call has {tokens} tokens")
        geometry = {"batch": self._batch(tokens, live)}
        if tokens > live:
            geometry["padding"] = {"tokens": tokens - live}
        capacity = self._length("capacity")
        if capacity is not None and capacity != tokens:
            geometry["max_batched_tokens"] = capacity
        caches = self._caches(geometry["batch"])
        if caches:
            geometry["caches"] = caches
        self._in_place()
        case = {"op": self.op["name"], "geometry": geometry}
        for key, value in (("params", self.params), ("contract", self.contract), ("layout", self._layout())):
            if value:
                case[key] = value
        return case

    def _length(self, axis):
        for name, spec in self.specs.items():
            if name in self.views and spec.get("shape", [None])[0] == axis and spec["role"] != "cache":
                return self.views[name].shape[0]
        return None

    def _tokens(self):
        tokens = self._length("T")
        if tokens is None:
            raise CaptureError(f"no tensor was bound whose first axis is the tokens: of {', '.join(self.specs)}")
        return tokens

    def _read_params(self):
        """What the call says of the op's params: by name, or by which tensors there are, of which shapes and types."""
        for name, spec in self.op.get("params", {}).items():
            given = self.bound.get(name)
            if isinstance(given, (bool, int, float, str)) and name not in self.params:
                self.params[name] = given
            if spec["type"] == "flag" and name not in self.params:
                asked = [each for each in self.specs.values() if each.get("when") == name]
                if asked and any(each["name"] in self.bound for each in asked):
                    self.params[name] = any(each["name"] in self.views for each in asked)
        for name, view in self.views.items():
            spec = self.specs[name]
            for size, length in zip(spec.get("shape", []), view.shape):
                if size in self.op.get("params", {}):
                    _set_equal(self.params, size, length, name)
            if spec.get("dtype") in self.op.get("params", {}):
                _set_equal(self.params, spec["dtype"], view.dtype, name)
        for name, spec in self.op.get("params", {}).items():
            if spec["type"] == "flag" and name in self.params:
                self.params[name] = bool(self.params[name])

    def _batch(self, tokens, live):
        start = self.bound.get("query_start_loc")
        positions = self.views.get("positions")
        if positions is None:
            return [{"uncached": live}]
        values = positions.integers()
        if len(values) != tokens:
            raise CaptureError(f"positions has {len(values)} elements, but the call has {tokens} tokens")
        if start is None:
            return _runs(values, live)
        bounds = _View("query_start_loc", start).integers()
        batch = []
        for first, end in zip(bounds, bounds[1:]):
            if first < end and values[first:end] != list(range(values[first], values[first] + end - first)):
                raise CaptureError(f"the positions of tokens {first} to {end - 1}, a request, are not one after another")
            batch.append({"cached": values[first], "uncached": end - first} if first < end else {})
        if sum(request.get("uncached", 0) for request in batch) != live:
            raise CaptureError(f"query_start_loc ends at {bounds[-1]}, but {live} tokens are live")
        return batch

    def _caches(self, batch):
        groups = {}
        for name, spec in self.specs.items():
            if spec["role"] != "cache" or name not in self.views:
                continue
            view = self.views[name]
            if len(view.shape) < 3:
                raise CaptureError(f"{name} has {len(view.shape)} axes: kernel blocks, the rows of one, and a record are needed")
            blocks, rows = view.shape[:2]
            used = sum(-(-(r.get("cached", 0) + r.get("uncached", 0)) // rows) for r in batch)
            record = view.itemsize
            for length in view.shape[2:]:
                record *= length
            padding = view.strides[0] * view.itemsize - rows * record if blocks > 1 else 0
            group = {"block_size": rows, "spare_blocks": max(1, blocks - 1 - used)}
            if 1 + used + group["spare_blocks"] != blocks:
                self.notes.append(f"{name} has {blocks} blocks, the case's {1 + used + group['spare_blocks']}")
            if padding < 0:
                raise CaptureError(f"the blocks of {name} overlap")
            if padding:
                group["block_stride_padding"] = padding
            if blocks * view.strides[0] * view.itemsize > _RESIDENT or group["spare_blocks"] > 1 << 20:
                group["sparse"] = True
            slots = self.views.get(spec["slot_mapping"])
            if slots is None:
                group["slot_mapping"] = "none"
            else:
                group["slot_mapping"], group["slots"] = "explicit", [slots.integers()]
            groups[spec["cache"]] = group
        return groups

    def _layout(self):
        layout = {}
        for name, view in self.views.items():
            if not self.specs[name].get("strided") or len(view.shape) < 2 or view.shape[0] < 2:
                continue
            if self.specs[name].get("in_place_of") and self._lies_on(name):
                continue  # laid out by what it lies on
            dense = 1
            for length in view.shape[1:]:
                dense *= length
            if view.strides[0] != dense:
                layout[name] = {"stride": view.strides[0]}
        return layout

    def _lies_on(self, name):
        under = self.views.get(self.specs[name]["in_place_of"])
        return under is not None and under.address() is not None and under.address() == self.views[name].address()

    def _in_place(self):
        """An output on the memory of its input is a contract option: "option.k_outputs == 'in_place'"."""
        for name, view in self.views.items():
            said = re.fullmatch(r"option\.(\w+) == '(\w+)'", self.specs[name].get("in_place_when", ""))
            if said and view.shape and self._lies_on(name):
                self.contract[said[1]] = said[2]

    def seeded(self):
        """Inputs that hold values, not what follows from the geometry."""
        floats = ("bf16", "fp32", "e4m3")
        return [view for name, view in self.views.items() if self.specs[name]["role"] == "in" and view.dtype in floats]

    def values(self):
        """By tensor whose values a case can hold: its elements."""
        return {
            name: view.dense_bytes()
            for name, view in self.views.items()
            if self.specs[name]["role"] == "in" and self.specs[name].get("recipe_settable") and 0 not in view.shape
        }


def _write_whole(path, data):
    """Under its name once it is whole; False where it is there already."""
    if os.path.exists(path):
        return False
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".capture-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return True


def write_case(folder, case, name, source, values=None):
    """Writes a case file, and the elements of `values` beside it, each in a file that its SHA-256 names. Returns its path."""
    case = dict(case)
    stored = {}
    for tensor, data in sorted((values or {}).items()):
        digest = hashlib.sha256(data).hexdigest()
        stored[tensor] = "stored:" + digest
        _write_whole(os.path.join(folder, digest + ".bin"), data)
    if stored:
        case["values"] = {**case.get("values", {}), **stored}
    text = json.dumps({"schema": "dcpcheck.case/1", "name": name, "source": source, "case": case}) + "\n"
    if len(text) > _MOST_BYTES:
        raise CaptureError(f"the case is {len(text)} bytes of JSON, and a case file has at most {_MOST_BYTES}: too many slots")
    path = os.path.join(folder, name + ".json")
    if not _write_whole(path, text.encode()):
        raise CaptureError(f"{path} is there already")
    return path


class Capture:
    """What capture() says of a wrapper: counts its calls, and writes those that are asked for."""

    def __init__(self, wrapper, op, folder, sample, every, wrong, tensors, most, bind, params, contract):
        if not 0 <= sample <= 1:
            raise ValueError(f"sample is {sample}, but a share of the calls is needed, from 0 to 1")
        self.wrapper, self.op, self.folder = wrapper, op, os.fspath(folder)
        self.sample, self.every, self.wrong = sample, every, wrong
        self.tensors, self.most = tensors, most
        self.bind, self.params, self.contract = bind, params, contract
        self.calls, self.written, self.paths = 0, 0, []
        self._document = None
        self._lock = threading.Lock()
        self._said = set()

    def __call__(self, arguments, keywords):
        with self._lock:
            self.calls += 1
            number = self.calls
        sampled = bool(self.every and number % self.every == 0) or (self.sample > 0 and random.random() < self.sample)
        # Before the call: it may write to what it was given.
        if sampled:
            self.write(arguments, keywords, number, "sampled")
        try:
            result = self.wrapper(*arguments, **keywords)
        except Exception as error:
            if not sampled:
                self.write(arguments, keywords, number, f"failed: {type(error).__name__}: {error}", after=True)
            raise
        if self.wrong is not None and not sampled and self._is_wrong(result, arguments, keywords):
            self.write(arguments, keywords, number, "wrong", after=True)
        return result

    def _is_wrong(self, result, arguments, keywords):
        try:
            return bool(self.wrong(result, *arguments, **keywords))
        except Exception as error:
            self._say(f"what tells a wrong call raised {type(error).__name__}: {error}")
            return False

    def write(self, arguments, keywords, number, why, after=False):
        """Writes the call; what stands in the way is said once on stderr, and never reaches the caller."""
        with self._lock:
            if self.written >= self.most:
                return
            self.written += 1
        try:
            self.paths.append(self._write(arguments, keywords, number, why, after))
        except Exception as error:
            with self._lock:
                self.written -= 1
            self._say(str(error) if isinstance(error, (CaptureError, program.ProgramError)) else f"{type(error).__name__}: {error}")

    def _write(self, arguments, keywords, number, why, after):
        if self._document is None:
            self._document = _op_document(self.op)
        if self.bind is None:
            call = inspect.signature(self.wrapper).bind(*arguments, **keywords)
            call.apply_defaults()
            bound = dict(call.arguments)
        else:
            bound = dict(self.bind(*arguments, **keywords))
        params = self.params(bound) if callable(self.params) else self.params
        made = Call(self._document, bound, params, self.contract)
        case = made.build()
        case["seed"] = os.urandom(8).hex()
        values = made.values() if self.tensors else {}
        notes = list(made.notes)
        seeded = [view.name for view in made.seeded() if view.name not in values]
        if seeded:
            notes.append(f"the values of {', '.join(seeded)} come from the seed")
        if values and after:
            notes.append("tensors were read after the call, which may have overwritten them")
        os.makedirs(self.folder, exist_ok=True)
        name = f"{self._document['name']}-{time.strftime('%Y%m%dT%H%M%S')}-{case['seed'][:8]}"
        source = f"captured of {self.wrapper.__qualname__}, call {number}, {why[:200]}"
        source += "".join("; " + note for note in notes)
        return write_case(self.folder, case, name, source, values)

    def _say(self, sentence):
        if sentence not in self._said and len(self._said) < 20:
            self._said.add(sentence)
            print(f"dcpcheck.capture of {self.wrapper.__qualname__}: {sentence}", file=sys.stderr)


def capture(op, folder, sample=0.0, every=0, wrong=None, tensors=False, most=20, bind=None, params=None, contract=None):
    """Writes calls of a wrapper in production as cases: those that raise, and those that are asked for here.

    op         its name, of which the executable tells (program.find), or the name of an op.json
    folder     where to; made where it is not there
    sample     the share of calls that are written whatever comes of them
    every      write each so many-th call
    wrong      wrong(result, *arguments, **keywords) says of a call that did not raise whether it is to be written
    tensors    also write the elements of inputs, in files beside the case; else values come from the case's seed
    most       so many cases in all
    bind       bind(*arguments, **keywords) gives the op's tensors and params by name; default: the wrapper's own parameters.
               `live` is how many tokens are no padding, `query_start_loc` where each request begins
    params     params that no tensor tells of, as {"mla_layout": "fp8_ds_mla"}, or a function of what is bound
    contract   contract options that the wrapper follows

    A case is one rank's launch, with that rank's slots as they were. What stands in the way of writing one is said on stderr, and
    the wrapper's own result or exception is never another. The object itself is the attribute `capture` of what is returned.
    """

    def decorate(wrapper):
        made = Capture(wrapper, op, folder, sample, every, wrong, tensors, most, bind, params, contract)

        @functools.wraps(wrapper)
        def call(*arguments, **keywords):
            return made(arguments, keywords)

        call.capture = made
        return call

    return decorate
