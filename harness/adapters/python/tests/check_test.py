"""@dcpcheck.check, run by pytest as people run it, and what it says where something is missing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CLIENT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = CLIENT.parent / "examples" / "host"
PROGRAM = os.environ["DCPCHECK_PROGRAM"]



def with_pytest():
    """A Python that has pytest: this one, or the system's own."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False).returncode == 0:
            return python
    return None


PYTHON = with_pytest()

TESTS = """
import sys
sys.path.insert(0, {examples!r})
import dcpcheck
import fused_eh_norm

OPTIONS = {{"norm_round": ["none", "bf16"], "division": ["rn", "full"]}}


@dcpcheck.check(op="fused_eh_norm", cases=12, options=OPTIONS, requirements=["T * hidden_size < 20000"])
def test_right(launch):
    print("a kernel may print")
    fused_eh_norm.run(launch)


@dcpcheck.check(op="fused_eh_norm", cases=12, options=OPTIONS, requirements=["T * hidden_size < 20000"])
def eps_left_out(launch):
    '''Collected by the plugin, as its name is not that of a test.'''
    launch.scalars["embeds_eps"] = 0.0
    fused_eh_norm.run(launch)


@dcpcheck.check(op="fused_eh_norm", cases=3, requirements=["hidden_size < 0"])
def test_for_none(launch):
    fused_eh_norm.run(launch)


@dcpcheck.check(op="fused_eh_norms", cases=3)
def test_no_such_op(launch):
    fused_eh_norm.run(launch)
"""


@unittest.skipUnless(PYTHON, f"neither {sys.executable} nor /usr/bin/python3 has pytest (apt: python3-pytest)")
class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        pathlib.Path(self.folder, "test_kernels.py").write_text(TESTS.format(examples=str(EXAMPLES)))

    def pytest(self, *words, **environment):
        environment = {
            **os.environ,
            "PYTHONPATH": str(CLIENT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DCPCHECK": PROGRAM,
            "TMPDIR": self.folder,
            **environment,
        }
        command = [PYTHON, "-m", "pytest", "-q", "-p", "dcpcheck.pytest_plugin", "-p", "no:cacheprovider", "-rs", *words]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def kept(self):
        return sorted(path.name for path in pathlib.Path(self.folder).glob("dcpcheck-*"))

    def test_a_right_function_passes_and_leaves_nothing(self):
        code, text = self.pytest("-k", "test_right")
        self.assertEqual(code, 0, text)
        self.assertIn("1 passed", text)
        self.assertEqual(self.kept(), [])

    def test_a_wrong_one_fails_in_the_harness_s_words_and_the_replay_line_repeats_it(self):
        code, text = self.pytest("-k", "eps_left_out")
        self.assertEqual(code, 1, text)
        self.assertIn("eps_left_out: ", text)
        self.assertIn("of 12 cases of fused_eh_norm failed", text)
        self.assertIn("out: wrong values on ranks", text)
        self.assertNotIn("Traceback", text)
        self.assertEqual(len(self.kept()), 1)
        replay = next(line for line in text.splitlines() if line.startswith(PROGRAM + " run "))
        again = subprocess.run(["/bin/sh", "-c", replay], cwd="/", capture_output=True, text=True, check=False)
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn("out: wrong values on ranks", again.stdout)

    def test_a_kernel_for_none_of_the_cases_is_skipped_with_the_reason(self):
        code, text = self.pytest("-k", "for_none")
        self.assertEqual(code, 0, text)
        self.assertIn("1 skipped", text)
        self.assertIn("hidden_size < 0", text)

    def test_bad_usage_is_dcpchecks_own_sentence(self):
        code, text = self.pytest("-k", "no_such_op")
        self.assertEqual(code, 1, text)
        self.assertIn("did you mean fused_eh_norm", text)

    def test_a_missing_executable_is_said(self):
        code, text = self.pytest("-k", "test_right", DCPCHECK="/nowhere/dcpcheck")
        self.assertEqual(code, 1, text)
        self.assertIn("/nowhere/dcpcheck, which DCPCHECK names, is not there", text)
        environment_without = self.pytest("-k", "test_right", DCPCHECK="", PATH="/nowhere")
        self.assertEqual(environment_without[0], 1)
        self.assertIn("there is no dcpcheck on PATH: set DCPCHECK=/path/to/dcpcheck", environment_without[1])

    def test_the_command_line_says_how_many_cases(self):
        code, text = self.pytest("-k", "eps_left_out", "--dcpcheck-cases", "40", "--dcpcheck-seed", "7", "--dcpcheck", PROGRAM)
        self.assertEqual(code, 1, text)
        self.assertIn("of 40 cases of fused_eh_norm failed", text)


class WithoutPytest(unittest.TestCase):
    def test_a_function_in_a_function_is_refused(self):
        sys.path.insert(0, str(CLIENT))
        self.addCleanup(sys.path.remove, str(CLIENT))
        import dcpcheck

        def kernel(launch):
            del launch

        with self.assertRaisesRegex(TypeError, "lies in a function"):
            dcpcheck.check(op="fused_eh_norm")(kernel)


if __name__ == "__main__":
    unittest.main()
