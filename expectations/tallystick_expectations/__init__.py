"""The checks of a good run, as typed Great Expectations suites over the stored run.

Evaluated in a process of its own after the commit: nothing here is on the path of the verdict.
"""
