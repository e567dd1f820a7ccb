"""Fuzzes one target by coverage until its time is over: python -m tests.fuzz.one_target NAME [libFuzzer's options].

An input that takes longer than CPU_SECONDS_MAX is a finding: of this process's own seconds, so that whatever else the
machine does makes no input slow. Not imported by any test: atheris is installed beside the rest by `make fuzz` alone.
"""

import sys

import atheris

with atheris.instrument_imports(include=["tallystick", "tallystick_spark", "aiokafka", "yaml"]):
    from tests.fuzz.targets import TARGETS, within_cpu_seconds

CPU_SECONDS_MAX = 10

if __name__ == "__main__":
    target = within_cpu_seconds(CPU_SECONDS_MAX, TARGETS[sys.argv.pop(1)])
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
