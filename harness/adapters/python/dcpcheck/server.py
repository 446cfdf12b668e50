"""The conversation with dcpcheck: a ready line, then an answer to each launch."""

import inspect
import json
import os
import sys
import traceback

from dcpcheck.launch import Launch
from dcpcheck.memory import CudaDriver, CudaError, DeviceMemory, HostMemory

PROTOCOL = 1

_answers = None


class Skip(Exception):
    """Raised by a kernel that is not for the case: Skip("no rows of 7 elements")."""


def claim_stdout():
    """Keeps stdout for the answers; what is printed from here on, by whatever means, comes out on stderr.

    serve() does it. To be called before imports that print.
    """
    global _answers
    if _answers is None:
        sys.stdout.flush()
        _answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)


def _say(value):
    _answers.write(json.dumps(value) + "\n")
    _answers.flush()


def _where(error):
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""


class _Memories:
    """The memory of each kind, kept from launch to launch."""

    def __init__(self, ipc):
        self.ipc = ipc
        self.host = HostMemory()
        self.device = None

    def of_device(self, index):
        if self.device is None or self.device.device != index:
            self.device = DeviceMemory(CudaDriver(index))
        return self.device


def _answer_on_host(run, request, memories):
    return _answer(run, Launch(request, memories.host.at(request["memory"])))


def _answer_on_device(run, request, memories):
    given = request["memory"]
    memory = memories.of_device(given["device"])
    if given["kind"] == "cuda_ipc":
        try:
            memory.map(given)
        except CudaError as error:
            return {"unmapped": str(error)}
    else:
        host = memories.host.at(given)
        memory.upload(host, given["bytes"])
    answer = _answer(run, Launch(request, memory))
    # Where the context is lost there is nothing to go on with: the error leaves, and the process ends.
    memory._driver.synchronize()
    if given["kind"] != "cuda_ipc":
        memory.download(host, given["bytes"])
    return answer


def _answer(run, launch):
    try:
        run(launch)
        return {"ok": True}
    except Skip as reason:
        return {"skip": str(reason)}
    except Exception as error:
        traceback.print_exc()
        return {"refused": f"{type(error).__name__}: {error}{_where(error)}"}


def serve(
    op,
    run,
    name=None,
    doc="",
    devices=("host",),
    options=None,
    tensors=None,
    requirements=(),
    source=None,
    ipc=True,
    preset=None,
):
    """Serves launches until dcpcheck has no more.

    op            whose kernel it is, as `dcpcheck ops` shows it
    run           run(launch) makes one launch; raises Skip for a case that it is not for, anything else to refuse it
    name, doc     for people
    devices       "host", "cuda" or both
    options       by contract option: the value, or values, that the kernel follows; of one left out, the op's default
    preset        one of the op's presets, as `dcpcheck ops` shows it: what is followed where `options` says nothing, and required
    tensors       names of those that the kernel knows: cases with others are skipped. None: all of the op
    requirements  what a case must be like: "hidden_size % 8 == 0", or a pair of that and how it reads to people
    source        the file that the kernel is from; default: the one that defines `run`
    ipc           whether device memory may be handed over by its handle, else it is copied through the host
    """
    claim_stdout()
    if source is None:
        source = inspect.getsourcefile(inspect.unwrap(run)) or sys.argv[0]
    ready = {
        "dcpcheck": PROTOCOL,
        "op": op,
        "name": name or getattr(run, "__name__", op),
        "doc": doc,
        "devices": [devices] if isinstance(devices, str) else list(devices),
        "options": {key: [value] if isinstance(value, str) else list(value) for key, value in (options or {}).items()},
        "requirements": [
            {"that": each} if isinstance(each, str) else {"that": each[0], "say": each[1]} for each in requirements
        ],
        "source": os.path.abspath(source),
        "ipc": ipc,
    }
    if preset is not None:
        ready["preset"] = preset
    if tensors is not None:
        ready["tensors"] = list(tensors)
    _say(ready)
    memories = _Memories(ipc)
    for line in sys.stdin:
        request = json.loads(line)
        answer = _answer_on_device if request["device"] == "cuda" else _answer_on_host
        _say({"launch": request["launch"], **answer(run, request, memories)})
