"""What a book behind FAB is expected to show, and a sentence for each thing that is not so."""

import pytest

from lab.rounds.fronted_book import Fronted

RIGHT = {
    "verdicts": ("BROKEN",),
    "found": ("missing_in_topic_never_produced",),
    "shown_to": ("admin", "editor"),
    "seconds": 60.0,
}


def test_nothing_differs_where_it_is_as_expected() -> None:
    assert Fronted(**RIGHT).differs == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"verdicts": ("MATCHED",)}, "fronted, behind FAB: verdicts MATCHED; expected BROKEN"),
        ({"found": ()}, "fronted, behind FAB: found none; expected missing_in_topic_never_produced"),
        (
            {"shown_to": ("admin", "editor", "other_editor")},
            "fronted, behind FAB: shown_to admin, editor, other_editor; expected admin, editor",
        ),
    ],
)
def test_each_thing_that_differs_is_told(changed: dict[str, tuple[str, ...]], said: str) -> None:
    assert Fronted(**RIGHT | changed).differs == (said,)  # type: ignore[arg-type]
