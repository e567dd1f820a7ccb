"""Evidence is flattened in the order of its keys, and cut where it does not end."""

from tallystick.report.evidence_lines import evidence_lines


def test_evidence_is_flattened_in_the_order_of_its_keys() -> None:
    evidence = {"b": [{"y": None, "x": True}, "z"], "a": {"n": 0, "none": []}, "c": ""}
    assert evidence_lines(evidence) == (
        ("a.n", "0"),
        ("a.none", "none"),
        ("b[0].x", "yes"),
        ("b[0].y", "not known"),
        ("b[1]", "z"),
        ("c", "none"),
    )


def test_money_is_told_with_its_currency_and_what_only_looks_so_is_flattened() -> None:
    evidence = {"money": {"JPY": 5, "EUR": 123_456}, "moved_minor": {"EUR": -1}, "items": {"EUR": 7}, "sum_minor": 8}
    assert evidence_lines(evidence) == (
        ("items.EUR", "7"),
        ("money", "1,234.56 EUR, 5 JPY"),
        ("moved", "-0.01 EUR"),
        ("sum_minor", "8"),
    )


def test_endless_evidence_is_cut_and_says_so() -> None:
    lines = evidence_lines({"offsets": list(range(100))})
    assert len(lines) == 41
    assert lines[-1] == ("...", "60 more lines in the verdict store")
