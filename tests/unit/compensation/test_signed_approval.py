"""Whose signature counts, and over what."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lab.rounds.second_person import public_line, signature_of
from tallystick.compensation.signed_approval import (
    NAMESPACE,
    SIGNERS_VARIABLE,
    ApprovalRefused,
    Reopening,
    SheetRules,
    SignedApproval,
    approval_sheet,
    read_signed,
    read_signers,
    reopening_sheet,
)
from tests.unit.compensation.plans import DOUBLED, TAKES_BACK, candidate, contract, describe_plan, plan

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES = SheetRules(environment="production", shown_key=str)
PLAN = plan(candidate("a"))
BOB = Ed25519PrivateKey.from_private_bytes(bytes(32))


def sign(sheet: bytes, **how: Any) -> bytes:
    return signature_of(sheet, **{"key": BOB} | how)


def signers_file(folder: Path, *lines: str) -> dict[str, str]:
    file = folder / "signers"
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o644)
    return {SIGNERS_VARIABLE: str(file)}


def presented(folder: Path, sheet: str | bytes, signature: bytes | None = None, **how: Any) -> SignedApproval:
    content = sheet.encode() if isinstance(sheet, str) else sheet
    file = folder / "sheet.json"
    file.write_bytes(content)
    (folder / "sheet.json.sig").write_bytes(sign(content) if signature is None else signature)
    signers = read_signers(signers_file(folder, f"bob {public_line(BOB)}"))
    return read_signed(file, plans_sheet, **{"signers": signers, "now_utc": NOW} | how)


def plans_sheet(made_at_utc: datetime) -> str:
    return approval_sheet(PLAN, RULES, made_at_utc=made_at_utc)


def sheet(**changes: Any) -> str:
    given = {"plan": PLAN, "rules": RULES, "made_at_utc": NOW - timedelta(minutes=10)} | changes
    return approval_sheet(given["plan"], given["rules"], made_at_utc=given["made_at_utc"])


def test_a_signed_sheet_names_its_signer_and_when_it_was_made(tmp_path: Path) -> None:
    signed = presented(tmp_path, sheet())
    assert (signed.signer, signed.made_at_utc) == ("bob", NOW - timedelta(minutes=10))
    assert signed.key_fingerprint.startswith("SHA256:")
    assert signed.document_sha256 == sha256(sheet().encode()).hexdigest()


def test_a_sheet_keeps_its_form_from_one_version_to_the_next() -> None:
    document = {
        "what": "Whoever signs this agrees that Tallystick carries out this plan.",
        "contract": "payouts",
        "environment": "production",
        "plan_hash": PLAN.plan_hash,
        "made_at_utc": "2026-03-01T11:50:00+00:00",
        "plan": describe_plan(PLAN).splitlines(),
    }
    assert sheet() == json.dumps(document, indent=1) + "\n"


def test_a_sheet_says_how_a_copy_is_taken_back_so_that_the_signature_holds_for_no_other_way() -> None:
    doubled = plan(candidate("b", break_class=DOUBLED, at="topic:billing.payouts:1:17"), **TAKES_BACK)
    sheets = {
        approval_sheet(doubled, replace(RULES, allowed=contract(**given).compensation), made_at_utc=NOW)
        for given in (TAKES_BACK, TAKES_BACK | {"reversal": "header"})
    }
    assert len(sheets) == 2


def test_the_sheet_of_a_reopening_says_all_that_the_store_says_of_the_action() -> None:
    reopening = Reopening(
        contract="payouts",
        environment="production",
        action_id=UUID(int=7),
        by="ada",
        reason="looked",
        before=1,
        state="waiting",
        outcome={"why": "gone"},
    )
    document = {
        "what": "Whoever signs this agrees that the next plan may repair this action's break again, and has looked.",
        "made_at_utc": "2026-03-01T12:00:00+00:00",
        "contract": "payouts",
        "environment": "production",
        "action_id": str(UUID(int=7)),
        "by": "ada",
        "reason": "looked",
        "before": 1,
        "state": "waiting",
        "outcome": {"why": "gone"},
    }
    assert reopening_sheet(reopening, made_at_utc=NOW) == json.dumps(document, indent=1) + "\n"


def test_a_sheet_of_a_mebibyte_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    for size, refused in ((1 << 20, "no sheet that Tallystick has printed"), ((1 << 20) + 1, "over 1048576 bytes")):
        with pytest.raises(ApprovalRefused, match=refused):
            presented(tmp_path, " " * size)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(sheet(plan=plan(candidate("b"))), id="another plan"),
        pytest.param(sheet(rules=SheetRules(environment="test", shown_key=str)), id="another environment"),
        pytest.param(sheet(rules=SheetRules(environment="production", shown_key=lambda _: "b")), id="other words"),
        pytest.param(sheet().replace("1.00 EUR", "0.01 EUR"), id="less money in words"),
        pytest.param(sheet() + " ", id="a space more"),
    ],
)
def test_a_sheet_that_says_anything_else_is_refused_whoever_signed_it(tmp_path: Path, other: str) -> None:
    with pytest.raises(ApprovalRefused, match="expected the sheet as Tallystick prints it"):
        presented(tmp_path, other)


@pytest.mark.parametrize(
    "other",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"made_at_utc": 7}',
        '{"made_at_utc": "2026-03-01"}',
        '{"made_at_utc": "9999-12-31T23:59:59-23:59"}',
    ],
    ids=["empty", "list", "nested", "number", "no zone", "behind the last day"],
)
def test_what_is_no_sheet_is_refused(tmp_path: Path, other: str) -> None:
    with pytest.raises(ApprovalRefused, match=r"sheet\.json: no sheet that Tallystick has printed"):
        presented(tmp_path, other)


def test_a_sheet_from_the_future_is_refused(tmp_path: Path) -> None:
    presented(tmp_path, sheet(made_at_utc=NOW + timedelta(minutes=5)))
    with pytest.raises(ApprovalRefused, match="expected a time that has passed"):
        presented(tmp_path, sheet(made_at_utc=NOW + timedelta(minutes=6)))


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n", id="cut off"),
        pytest.param(sign(b"another document"), id="of another document"),
        pytest.param(sign(sheet().encode(), namespace="git"), id="for another purpose"),
    ],
)
def test_what_is_no_signature_of_this_sheet_is_refused(tmp_path: Path, signature: bytes) -> None:
    with pytest.raises(ApprovalRefused, match="not a valid signature"):
        presented(tmp_path, sheet(), signature)


def test_a_stranger_key_signs_for_nobody(tmp_path: Path) -> None:
    with pytest.raises(ApprovalRefused, match=f"{SIGNERS_VARIABLE} does not list"):
        presented(tmp_path, sheet(), sign(sheet().encode(), key=Ed25519PrivateKey.generate()))


def test_a_missing_signature_is_named(tmp_path: Path) -> None:
    (tmp_path / "sheet.json").write_text(sheet())
    with pytest.raises(ApprovalRefused, match=r"sheet\.json\.sig: No such file"):
        read_signed(tmp_path / "sheet.json", plans_sheet, signers={}, now_utc=NOW)


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (f"bob,eve {public_line(BOB)}", "a pattern or a list"),
        (f"* {public_line(BOB)}", "a pattern or a list"),
        (f"bo? {public_line(BOB)}", "a pattern or a list"),
        (f"!bob {public_line(BOB)}", "a pattern or a list"),
        (f"bob cert-authority {public_line(BOB)}", "only namespaces"),
        (f'bob valid-before="20300101" {public_line(BOB)}', "only namespaces"),
        (f'bob namespaces="git" {public_line(BOB)}', "only namespaces"),
        ("bob", "Invalid line"),
        ("bob ssh-ed25519 AAAA", "expected lines"),
        ("bob ecdsa-sha2-nistp256 AAAA", "expected lines"),
    ],
    ids=[
        "list",
        "pattern",
        "one letter",
        "all but one",
        "authority",
        "valid-before",
        "namespace",
        "no key",
        "cut off",
        "ecdsa",
    ],
)
def test_a_line_that_is_not_one_persons_key_refuses_the_file(tmp_path: Path, line: str, refused: str) -> None:
    with pytest.raises(ApprovalRefused, match=refused):
        read_signers(signers_file(tmp_path, line))
    named = f'"bob builder" namespaces="{NAMESPACE}" {public_line(BOB)}'
    assert list(read_signers(signers_file(tmp_path, "# people", named)).values()) == ["bob builder"]
    two = f'Xaver namespaces="git,{NAMESPACE}" {public_line(BOB)}'
    assert list(read_signers(signers_file(tmp_path, two)).values()) == ["Xaver"]


def test_a_file_that_others_may_write_or_that_is_not_there_counts_for_nothing(tmp_path: Path) -> None:
    environment = signers_file(tmp_path, f"bob {public_line(BOB)}")
    assert environment.keys() == {"TALLYSTICK_ALLOWED_SIGNERS"}
    Path(environment[SIGNERS_VARIABLE]).chmod(0o755)
    assert list(read_signers(environment).values()) == ["bob"]
    Path(environment[SIGNERS_VARIABLE]).chmod(0o664)
    with pytest.raises(ApprovalRefused, match="group or others may write it"):
        read_signers(environment)
    with pytest.raises(ApprovalRefused, match="No such file"):
        read_signers({SIGNERS_VARIABLE: str(tmp_path / "none")})
    with pytest.raises(ApprovalRefused, match="is not set"):
        read_signers({})
