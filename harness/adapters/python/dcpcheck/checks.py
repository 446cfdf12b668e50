"""Tests of a kernel that is a function: @dcpcheck.check(op="fused_norm_rope", cases=200)."""

import inspect
import json
import os
import pathlib
import shlex
import shutil
import sys
import tempfile

from dcpcheck import program
from dcpcheck.server import serve


class Failed(AssertionError):
    """The kernel failed a case, or the check could not be made. Its text is dcpcheck's own."""


class AllSkipped(Exception):
    """The kernel is for none of the cases. Its text says why."""


class Check:
    """What check() says of a function: run() makes the check, serve() is the kernel's side of it."""

    def __init__(self, kernel, op, cases, seed, devices, backend, options, tensors, requirements, ops, laws):
        self.kernel, self.op, self.cases, self.seed = kernel, op, cases, seed
        self.devices = [devices] if isinstance(devices, str) else list(devices)
        self.backend = backend or (self.devices[0] if len(self.devices) == 1 else "auto")
        self.options, self.tensors, self.requirements = options, tensors, requirements
        self.ops, self.laws = [ops] if isinstance(ops, (str, os.PathLike)) else list(ops), laws

    def serve(self):
        serve(
            op=self.op,
            run=self.kernel,
            name=self.kernel.__qualname__,
            devices=self.devices,
            options=self.options,
            tensors=self.tensors,
            requirements=self.requirements,
        )

    def spec(self):
        """--kernel: a process that imports the function's module anew, and serves it."""
        file = pathlib.Path(inspect.getsourcefile(self.kernel)).resolve()
        module = self.kernel.__module__
        # What the module's name begins at, and this package where it is not installed.
        root = file.parents[module.count(".") + (1 if file.name == "__init__.py" else 0)]
        here = pathlib.Path(__file__).resolve().parents[1]
        paths = shlex.quote(os.pathsep.join([str(root), str(here)]))
        words = [sys.executable, "-m", "dcpcheck.kernel_process", module, str(file), self.kernel.__qualname__]
        return f"exec:exec env PYTHONPATH={paths}${{PYTHONPATH:+:$PYTHONPATH}} {shlex.join(words)}"

    def run(self, cases=None, seed=None, executable=None):
        """Draws cases, runs them, and raises Failed where one is not right, AllSkipped where the kernel is for none.

        The cases are kept where one failed: the line that repeats it names its file.
        """
        folder = tempfile.mkdtemp(prefix="dcpcheck-")
        wrong = ""
        try:
            self._draw(os.path.join(folder, "cases"), cases or self.cases, seed if seed is not None else self.seed, executable)
            wrong = self._judge(folder, executable)
        except program.ProgramError as error:
            raise Failed(str(error)) from None
        finally:
            if not wrong:
                shutil.rmtree(folder, ignore_errors=True)
        if wrong:
            raise Failed(wrong)

    def _draw(self, folder, cases, seed, executable):
        words = ["gen", self.op, "--cases", str(cases), "--out", folder, *self._ops()]
        if seed is not None:
            words += ["--seed", str(seed)]
        done = program.run(words, executable)
        if done.returncode != 0:
            raise Failed(_said(done))

    def _ops(self):
        return [word for folder in self.ops for word in ("--ops", os.fspath(folder))]

    def _judge(self, folder, executable):
        """What is wrong with the kernel, "" for nothing."""
        report = os.path.join(folder, "report.json")
        words = ["run", "--backend", self.backend, "--kernel", self.spec(), *self._ops()]
        words += [word for law in self.laws for word in ("--law", law)]
        done = program.run([*words, "--json", report, os.path.join(folder, "cases")], executable)
        if done.returncode not in (0, 1, 77):
            raise Failed(_said(done))
        with open(report, encoding="utf-8") as file:
            results = json.load(file)["results"]
        if done.returncode == 77:
            raise AllSkipped(f"{self.kernel.__qualname__}: " + (results[0]["detail"] if results else "there was no case"))
        if done.returncode == 0:
            return ""
        wrong = [result for result in results if not result["as_expected"] and result["status"] != "skipped"]
        least = min(wrong, key=lambda result: os.path.getsize(result["case"]))
        alone = program.run([*words, "--seed", _seed_of(least["case"]), least["case"]], executable)
        skipped = sum(result["status"] == "skipped" for result in results)
        lines = [
            f"{self.kernel.__qualname__}: {len(wrong)} of {len(results)} cases of {self.op} failed"
            + (f", and {skipped} were skipped" if skipped else "")
            + "; the one of the shortest file:"
        ]
        if alone.returncode == 0:
            lines.append(f"it passed when it was run again, and was {least['status']} ({least['reason']}) before: {least['detail']}")
        return "\n".join([*lines, _said(alone)])


def _seed_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["case"]["seed"]


def _said(done):
    """What dcpcheck said, its line that repeats the run last."""
    text = done.stdout.strip("\n") + ("\n" + done.stderr.strip("\n") if done.stderr.strip() else "")
    if done.returncode < 0:
        text += f"\ndcpcheck ended by signal {-done.returncode}"
    return text.strip("\n") or f"dcpcheck said nothing, and ended with {done.returncode}"


def check(
    op, cases=200, seed=None, devices="host", backend=None, options=None, tensors=None, requirements=(), ops=(), laws=()
):
    """Makes a test of a kernel: a function that takes a launch, as serve() has it. pytest finds it by itself.

    op                                        whose kernel it is, as `dcpcheck ops` shows it
    cases, seed                               how many cases are drawn, and of which seed; default: the one of `dcpcheck gen`
    devices, options, tensors, requirements   what the kernel declares, as in serve()
    backend                                   "host", "cuda" or "auto"; default: of one device that, else auto
    ops                                       folders of ops of your own
    laws                                      ask these laws in place of judging every element

    The function itself stays at hand as `.kernel` of the attribute `dcpcheck`. Each process that serves it imports its module
    anew, so that it must be a function of a module, and nothing that stands in the module may depend on having been run once.
    """

    def decorate(kernel):
        if "<locals>" in kernel.__qualname__:
            raise TypeError(f"{kernel.__qualname__} lies in a function: dcpcheck.check needs one that can be imported")
        made = Check(kernel, op, cases, seed, devices, backend, options, tensors, requirements, ops, tuple(laws))

        def test():
            outcome = None
            try:
                made.run(*_from_the_command_line())
            except (AllSkipped, Failed) as error:
                outcome = error
            if outcome is not None:
                _say_so(outcome)

        # Not by functools.wraps: pytest would ask for a fixture called `launch`.
        test.__name__, test.__qualname__ = kernel.__name__, kernel.__qualname__
        test.__module__, test.__doc__ = kernel.__module__, kernel.__doc__
        test.dcpcheck = made
        return test

    return decorate


def _from_the_command_line():
    plugin = sys.modules.get("dcpcheck.pytest_plugin")
    return plugin.given() if plugin else (None, None, None)


def _say_so(outcome):
    """As pytest has it where it runs us, without our own frames; as the exception that it is elsewhere."""
    pytest = sys.modules.get("pytest")
    if pytest is None:
        raise outcome
    if isinstance(outcome, Failed):
        pytest.fail(str(outcome), pytrace=False)
    pytest.skip(str(outcome))
