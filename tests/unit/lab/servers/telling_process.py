"""Not a test: `python -m tests.unit.lab.servers.telling_process CODE` says what it was given, and ends when told to."""

import json
import os
import sys


def main() -> None:
    told = {"argv": sys.argv[1:], "word": os.environ.get("WORD"), "leads": os.getsid(0) == os.getpid()}
    print(json.dumps(told), flush=True)
    print("a complaint", file=sys.stderr)
    sys.stdin.readline()
    sys.exit(int(sys.argv[1]))


if __name__ == "__main__":
    main()
