"""The command line: what the script `tallystick` runs, and python -m tallystick where it is not on the path."""

from tallystick.host.gc_tuning import short_process


def main() -> None:
    """Run one command. It is mostly imports: the search for garbage in them was a fifth of its time."""
    with short_process():
        from tallystick.cli.app import app

        app(prog_name="tallystick")


if __name__ == "__main__":
    main()
