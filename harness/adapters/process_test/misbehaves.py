"""A right kernel of fused_eh_norm, but for rows of 9 elements: there it does what its argument says."""

import array
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "host"))

import fused_eh_norm

from dcpcheck import Launch
from dcpcheck.memory import HostMemory

memory = HostMemory()


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(request, **what):
    write(json.dumps({"launch": request["launch"], **what}) + "\n")


def complain(*lines):
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def launch_of(request):
    return Launch(request, memory.at(request["memory"]))


def right(request):
    fused_eh_norm.run(launch_of(request))
    answer(request, ok=True)


def segfaults(request):
    complain("one", "two", "", "three", "four")
    os.kill(os.getpid(), signal.SIGSEGV)


def exits(request):
    complain("out of tiles")
    os._exit(3)


def leaves(request):
    os._exit(0)


def throws(request):
    raise ValueError("no such tile")


def hangs(request):
    complain("waiting for a lock")
    time.sleep(1000)


def hangs_in_its_answer(request):
    write('{"launch": ')
    time.sleep(1000)


def half_an_answer(request):
    write('{"launch": 0, "o')
    os._exit(0)


def garbage(request):
    write("Traceback?\x07 no\n")


def wakes_up_late(request):
    right({**request, "launch": request["launch"] - 1})


def no_end_of_line(request):
    for _ in range(40):
        write("x" * 65536)
    time.sleep(1000)


def long_line(request):
    answer(request, refused="x" * 100_000)


def closes_stdout(request):
    os.close(1)
    time.sleep(1000)


def answers_twice(request):
    line = json.dumps({"launch": request["launch"], "ok": True}) + "\n"
    write(line + line)


def says_two_things(request):
    answer(request, ok=True, skip="not today")


def says_nothing(request):
    answer(request)


def is_not_ok(request):
    answer(request, ok=False)


def deep(request):
    write("[" * 100 + "]" * 100 + "\n")


def a_list(request):
    write("[1, 2]\n")


def unmapped(request):
    answer(request, unmapped="no CUDA")


def dies_after_its_answer(request):
    right(request)
    os._exit(5)


def talks_after_its_answer(request):
    right(request)
    time.sleep(0.2)
    write("done\n")
    # Heard by the next launch, whenever that comes.


def reads_no_more(request):
    os.close(0)
    right(request)
    time.sleep(1000)


def floods_stderr(request):
    for _ in range(4000):
        sys.stderr.write("a line of a hundred bytes or so, as a logger that is set to tell everything would write it\n")
    right(request)


def skips(request):
    answer(request, skip="not on a Monday\n")


def refuses(request):
    answer(request, refused="no such grid")


def refuses_without_a_word(request):
    answer(request, refused="")


def writes_nothing(request):
    answer(request, ok=True)


def writes_past_an_input(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    tensor = launch["embeds_weight"]
    end = tensor._offset + tensor.extent * tensor.itemsize
    memory.view()[end + 1 : end + 3] = b"\x01\x02"
    answer(request, ok=True)


def writes_before_an_input(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    memory.view()[launch["positions"]._offset - 8 : launch["positions"]._offset - 7] = b"\x01"
    answer(request, ok=True)


def writes_past_an_output(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    tensor = launch["out"]
    end = tensor._offset + tensor.extent * tensor.itemsize
    memory.view()[end + 600 : end + 601] = b"\x01"
    answer(request, ok=True)


def changes_an_input(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    launch["hidden_weight"].flat()[3] ^= 1
    answer(request, ok=True)


def reads_past_an_input(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    tensor = launch["embeds_weight"]
    end = tensor._offset + tensor.extent * tensor.itemsize
    launch["out"].row(0)[0] = memory.view()[end : end + 2].cast("H")[0]
    answer(request, ok=True)


def leaves_poison_of_its_own(request):
    # As a wrapper that copies an output of its own that it did not write.
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    launch["out"].row(0)[:] = array.array("H", [0x7FFE if launch.number % 2 == 0 else 0x8001] * 18)
    answer(request, ok=True)


def shrinks_the_memory(request):
    launch = launch_of(request)
    fused_eh_norm.run(launch)
    try:
        os.ftruncate(request["memory"]["descriptor"], 0)
    except OSError:
        return answer(request, ok=True)
    answer(request, refused="it could be made shorter")


def main():
    behaviour = globals()[sys.argv[1]]
    write(
        json.dumps(
            {
                "dcpcheck": 1,
                "op": "fused_eh_norm",
                "name": sys.argv[1],
                "devices": ["host"],
                "options": {"norm_round": ["none", "bf16"], "division": ["rn", "full"]},
                "source": os.path.abspath(__file__),
            }
        )
        + "\n"
    )
    while line := os.read(0, 1 << 20):
        while not line.endswith(b"\n"):
            line += os.read(0, 1 << 20)
        request = json.loads(line)
        (behaviour if request["scalars"]["hidden_size"] == 9 else right)(request)


main()
