"""The example on a CUDA device without PyTorch: what lies in the device memory is brought to the host and back.

Takes memory of the kind that its argument says, "cuda_ipc" or "shared", and refuses the other one.
"""

import ctypes
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "host"))

import fused_eh_norm

from dcpcheck import Launch
from dcpcheck.memory import CudaDriver, CudaError, DeviceMemory, HostMemory


class Copy:
    on_device = False

    def __init__(self, count):
        self.bytes = bytearray(count)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def view(self):
        return memoryview(self.bytes)


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


say(
    {
        "dcpcheck": 1,
        "op": "fused_eh_norm",
        "name": "on_device",
        "devices": ["cuda"],
        "options": {"norm_round": ["none", "bf16"], "division": ["rn", "full"]},
        "source": os.path.abspath(__file__),
        "ipc": sys.argv[1] == "cuda_ipc",
    }
)
driver = CudaDriver(0)
device = DeviceMemory(driver)
host = HostMemory()
why = "it was not asked to map any"
for line in sys.stdin:
    request = json.loads(line)
    given = request["memory"]
    answer = {"launch": request["launch"]}
    if given["kind"] != sys.argv[1]:
        say({**answer, "refused": "memory cannot be mapped: " + why})
        continue
    try:
        memory = device.map(given) if given["kind"] == "cuda_ipc" else device.upload(host.at(given), given["bytes"])
    except CudaError as error:
        why = str(error)
        say({**answer, "unmapped": why})
        continue
    copy = Copy(given["bytes"])
    driver.download(copy.address, memory.address, given["bytes"])
    fused_eh_norm.run(Launch(request, copy))
    driver.upload(memory.address, copy.address, given["bytes"])
    driver.synchronize()
    if given["kind"] == "shared":
        device.download(host, given["bytes"])
    say({**answer, "ok": True})
