"""Origins that die, drip, lie or say nothing under a steady load (tests/faults): a short form of each, or with --long
a minute at 2,000 requests a second."""
import os
import subprocess
import sys

import pytest

import harness

FAULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "faults.py")


@pytest.mark.whole_calls("a load is not for sockets that move a byte at a time")
@pytest.mark.parametrize("fault", ["kill", "down", "garbage", "drip", "silent"])
def test_what_the_others_do_to_us(fault, long):
    how = ["--seconds", "60", "--rate", "2000"] if long else ["--seconds", "4", "--rate", "400", "--every", "0.5", "--drips", "200"]
    run = subprocess.run([sys.executable, FAULTS, fault, "--thimble", harness.BINARY, *how], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=180)
    assert run.returncode == 0, run.stdout
    assert run.stdout.endswith("1 passed, 0 failed\n")
