"""The memory that a launch's tensors lie in: shared with dcpcheck on the host, or mapped from its CUDA device."""

import ctypes
import mmap


class HostMemory:
    """Memory shared through a file descriptor."""

    on_device = False
    device = None

    def __init__(self):
        self._map = None

    def at(self, given):
        """Itself, as large as the launch says that it is."""
        if self._map is None or len(self._map) != given["size"]:
            # The old mapping goes when the last view into it does.
            self._map = mmap.mmap(given["descriptor"], given["size"])
        return self

    def view(self):
        return memoryview(self._map)

    @property
    def address(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))


class DeviceBytes:
    """Bytes of the device, for whoever knows __cuda_array_interface__."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3}


class DeviceMemory:
    """Memory of a CUDA device: dcpcheck's, mapped by its handle, or, where that cannot be, this process's own."""

    on_device = True

    def __init__(self, driver):
        self._driver = driver
        self._handle = None
        self._mapped = 0
        self._own = 0
        self._own_bytes = 0
        self.device = driver.device
        self.address = 0

    def map(self, given):
        """dcpcheck's memory. Raises CudaError where this machine does not do that."""
        if given["handle"] != self._handle:
            if self._handle is not None:
                self._driver.close(self._mapped)
                self._handle = None
            self._mapped = self._driver.open(bytes.fromhex(given["handle"]))
            self._handle = given["handle"]
        self.address = self._mapped
        return self

    def upload(self, host, count):
        """Memory of this process's own, filled with the first `count` bytes of `host`."""
        if count > self._own_bytes:
            if self._own_bytes:
                self._driver.free(self._own)
            self._own, self._own_bytes = self._driver.allocate(count), count
        self._driver.upload(self._own, host.address, count)
        self.address = self._own
        return self

    def download(self, host, count):
        self._driver.download(host.address, self._own, count)


class CudaError(RuntimeError):
    """A call of the CUDA driver that did not succeed."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


class CudaDriver:
    """The few calls of the CUDA driver that it takes, in the context that the CUDA runtime and PyTorch use, too."""

    def __init__(self, device):
        self.device = device
        self._library = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", ctypes.c_uint(0))
        number = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(number), ctypes.c_int(device))
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(ctypes.c_int(status), ctypes.byref(text))
            raise CudaError(f"{name}: {text.value.decode() if text.value else status}")

    def open(self, handle):
        address = ctypes.c_uint64()
        peers_when_needed = ctypes.c_uint(1)
        self._call("cuIpcOpenMemHandle_v2", ctypes.byref(address), _Handle.from_buffer_copy(handle), peers_when_needed)
        return address.value

    def close(self, address):
        self._call("cuIpcCloseMemHandle", ctypes.c_uint64(address))

    def allocate(self, count):
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address.value

    def free(self, address):
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address, host, count):
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(host), ctypes.c_size_t(count))

    def download(self, host, address, count):
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(host), ctypes.c_uint64(address), ctypes.c_size_t(count))

    def synchronize(self):
        """Until all that any stream of the context was given is done."""
        self._call("cuCtxSynchronize")
