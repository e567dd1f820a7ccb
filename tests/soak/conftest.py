"""The stack that the lab's tests use."""

from tests.lab.conftest import lab_folder, lab_stack

__all__ = ["lab_folder", "lab_stack"]  # fixtures
