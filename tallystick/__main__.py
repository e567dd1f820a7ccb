"""python -m tallystick: the command line, where its script is not on the path."""

from tallystick.cli.app import app

if __name__ == "__main__":
    app(prog_name="tallystick")
