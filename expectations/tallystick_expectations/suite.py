"""One suite: the table it looks at, what it expects, and a table one fact away that it must not pass."""

from dataclasses import dataclass

import pandas as pd
from great_expectations.expectations.expectation import Expectation


@dataclass(frozen=True, kw_only=True)
class Suite:
    """expectations: instances of typed classes only, since a suite made of dicts drops what it does not know unseen.

    planted: `frame` with one fault, which the expectation named `found_by` must find: what cannot fail proves nothing.
    """

    name: str
    frame: pd.DataFrame
    planted: pd.DataFrame
    found_by: str
    expectations: tuple[Expectation, ...]
