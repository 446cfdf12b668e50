"""One launch: the tensors, and what else the case says."""

from dcpcheck import memory

# By dtype: bytes of an element, its format in struct and memoryview, NumPy's name, PyTorch's name.
_DTYPES = {
    "u8": (1, "B", "uint8", "uint8"),
    "bf16": (2, "H", "uint16", "bfloat16"),
    "e4m3": (1, "B", "uint8", "float8_e4m3fn"),
    "fp32": (4, "f", "float32", "float32"),
    "i32": (4, "i", "int32", "int32"),
    "i64": (8, "q", "int64", "int64"),
    "fp64": (8, "d", "float64", "float64"),  # of what a reference says
}


class Tensor:
    """A view into the launch's memory. What is written to it is judged; what is not keeps a pattern that tells so.

    name     as in the op; one for each cache group is called "<name>.<group>"
    role     "in", "out" or "cache"; inputs must not be written
    dtype    "u8", "bf16", "e4m3", "fp32", "i32" or "i64"
    shape    elements along each axis; a cache: [kernel blocks, rows of one, bytes of a record]
    strides  elements from one index to the next along each axis; a cache: bytes
    """

    def __init__(self, given, base):
        self.name = given["name"]
        self.role = given["role"]
        self.dtype = given["dtype"]
        self.shape = tuple(given["shape"])
        self.strides = tuple(given["strides"])
        self._offset = given["offset"]
        self._base = base
        self.itemsize, self._format, self._numpy, self._torch = _DTYPES[self.dtype]

    @property
    def extent(self):
        """Elements from the first to the last one, those between rows included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))

    @property
    def pointer(self):
        """The address of element [0, ..., 0], on the host or on the device."""
        return self._base.address + self._offset

    @property
    def __cuda_array_interface__(self):
        if not self._base.on_device:
            raise AttributeError("the tensor lies on the host")
        return {
            "shape": self.shape,
            "strides": tuple(stride * self.itemsize for stride in self.strides),
            "typestr": {"B": "|u1", "H": "<u2", "f": "<f4", "i": "<i4", "q": "<i8", "d": "<f8"}[self._format],
            "data": (self.pointer if self.extent else 0, False),
            "version": 3,
        }

    def flat(self):
        """The elements from the first to the last one as a memoryview; [i, j] is at i * strides[0] + j * strides[1].

        bf16 is given as the upper 16 bits of an fp32, e4m3 as its 8 bits. On the host alone.
        """
        if self._base.on_device:
            raise TypeError(f"{self.name} lies on the device: as_torch(), or pointer")
        whole = self._base.view()
        return whole[self._offset : self._offset + self.extent * self.itemsize].cast(self._format)

    def row(self, index):
        """Index `index` along axis 0 as a memoryview. The other axes must lie densely."""
        columns = 1
        for n, stride in zip(reversed(self.shape[1:]), reversed(self.strides[1:])):
            if stride != columns and n > 1:
                raise ValueError(f"rows of {self.name} have gaps")
            columns *= n
        if not 0 <= index < self.shape[0]:
            raise IndexError(f"{self.name} has no row {index}")
        begin = index * self.strides[0]
        return self.flat()[begin : begin + columns]

    def as_numpy(self):
        """A numpy.ndarray on the same memory, on the host alone: bf16 as uint16, e4m3 as uint8."""
        import numpy

        if self._base.on_device:
            raise TypeError(f"{self.name} lies on the device: as_torch(), or pointer")
        strides = [stride * self.itemsize for stride in self.strides]
        if not self.extent:
            return numpy.empty(self.shape, self._numpy)
        return numpy.ndarray(self.shape, self._numpy, self._base.view(), self._offset, strides)

    def as_torch(self):
        """A torch.Tensor on the same memory, wherever that is."""
        import torch

        dtype = getattr(torch, self._torch)
        return self.bytes_as_torch().view(dtype).as_strided(self.shape, self.strides)

    def bytes_as_torch(self):
        """All bytes from the first element to the last one as a torch.Tensor of one axis."""
        import torch

        count = self.extent * self.itemsize
        device = torch.device("cuda", self._base.device) if self._base.on_device else torch.device("cpu")
        if count == 0:
            return torch.empty(0, dtype=torch.uint8, device=device)
        if self._base.on_device:
            return torch.as_tensor(memory.DeviceBytes(self.pointer, count), device=device)
        return torch.frombuffer(self._base.view(), dtype=torch.uint8, count=count, offset=self._offset)


class Launch:
    """One launch, on one rank of a case. Nothing of it may be kept after run() has returned.

    number   of the launch in this process; the case is run twice, so that it is even and odd in turn
    device   "host" or "cuda"
    rank     of tp ranks
    threads  host: how many threads the kernel may use
    tensors  by name; a tensor that the case does not have is not there
    scalars  by name: params, sizes ("T", "live", ...), and contract options as "option.<name>"
    """

    def __init__(self, request, base):
        self.number = request["launch"]
        self.device = request["device"]
        self.rank = request["rank"]
        self.threads = request["threads"]
        self.op = request["op"]
        self.scalars = request["scalars"]
        self.tensors = {tensor["name"]: Tensor(tensor, base) for tensor in request["tensors"]}

    def __getitem__(self, name):
        """The tensor of that name. A scalar may have the same name: whether an output is asked for, as a rule."""
        return self.tensors[name]

    def __contains__(self, name):
        """Whether the case has the tensor."""
        return name in self.tensors

    def scalar(self, name):
        """A param or a size of the case."""
        return self.scalars[name]

    def option(self, name):
        """The value that the case has of a contract option."""
        return self.scalars["option." + name]
