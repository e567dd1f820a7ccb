"""Fuzzes one target by coverage until its time is over: python -m tests.fuzz.one_target NAME [libFuzzer's options].

Not imported by any test: atheris is installed beside the rest by `make fuzz` alone.
"""

import sys

import atheris

with atheris.instrument_imports(include=["tallystick", "tallystick_spark", "aiokafka", "yaml"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
