"""The error of a downgrade that would lose something; migrations raise it, too."""

from tallystick.model.errors import TallystickError


class DowngradeRefused(TallystickError):
    """The store cannot go back one revision. The message says what would be lost, or what was expected."""
