import subprocess
import sys


def test_calibration_is_usable_without_the_daemon_and_its_input_and_output():
    check = (
        "import sys, calibration, calibration.store, calibration.pictures\n"
        "forbidden = {'trio', 'serial', 'edge_daemon', 'firmware', 'socket', 'asyncio'}\n"
        "print(sorted(forbidden & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
