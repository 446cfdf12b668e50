"""The dcpcheck executable: where it is, and what it says."""

import os
import shutil
import subprocess


class ProgramError(Exception):
    """dcpcheck is not to be had, or could not do what it was asked for: a sentence."""


def find(given=None):
    """The executable: `given`, or what the environment variable DCPCHECK names, or the `dcpcheck` on PATH.

    Raises ProgramError where there is none.
    """
    named = given or os.environ.get("DCPCHECK")
    if not named:
        found = shutil.which("dcpcheck")
        if found is None:
            raise ProgramError("there is no dcpcheck on PATH: set DCPCHECK=/path/to/dcpcheck (build/release/bin has it once built)")
        return found
    found = shutil.which(named)
    if found is None:
        what = "is no file that can be run" if os.path.exists(named) else "is not there"
        raise ProgramError(f"{named}, which {'was given' if given else 'DCPCHECK names'}, {what}")
    return os.path.abspath(found)


def run(words, program=None):
    """Runs it to its end; returns what subprocess.run does, with stdout and stderr as text."""
    command = [find(program), *words]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False
    )
