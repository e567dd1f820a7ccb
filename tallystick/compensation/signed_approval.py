"""The approval that a person signs: the sheet with the actions, and the check of who signed it.

The sheet repeats in words what will be done, and is made again when it is presented, so nobody signs words that hide
another plan. Signatures and the list of signers are OpenSSH's: ssh-keygen(1), -Y sign and ALLOWED SIGNERS.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from sshsig import InvalidSignature, PublicKey, check_signature
from sshsig.allowed_signers import AllowedSigner, load_allowed_signers_file

from tallystick.compensation.plan import Plan, PlanRefused
from tallystick.compensation.plan_text import describe_plan
from tallystick.contract.compensation import CompensationRules
from tallystick.text.plain import escape_untrusted, format_time

NAMESPACE = "tallystick-approval"
"""What a signature is for, so that one over another document of the same bytes is none."""
SIGNERS_VARIABLE = "TALLYSTICK_ALLOWED_SIGNERS"

_BYTES_MAX = 1 << 20
_CLOCKS_APART = timedelta(minutes=5)
"""How far the clocks of who signs and of the verdict store may be apart."""
_WRITABLE_BY_OTHERS = 0o022


class ApprovalRefused(PlanRefused):
    """This is no valid signature of somebody who counts over this plan. The message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class SignedApproval:
    """The signer, the time the sheet was made, the key as `ssh-keygen -l` names it, and SHA-256 of the sheet in hex."""

    signer: str
    made_at_utc: datetime
    key_fingerprint: str
    document_sha256: str


@dataclass(frozen=True, kw_only=True)
class SheetRules:
    """The other contents of a sheet: its environment; by the contract, how people see a match key, and how copies are
    taken back.
    """

    environment: str
    shown_key: Callable[[str], str]
    allowed: CompensationRules | None = None


def approval_sheet(plan: Plan, rules: SheetRules, *, made_at_utc: datetime) -> str:
    """The text that a second person reads and signs."""
    document = {
        "what": "Whoever signs this agrees that Tallystick carries out this plan.",
        "contract": plan.contract,
        "environment": rules.environment,
        "plan_hash": plan.plan_hash,
        "made_at_utc": made_at_utc.isoformat(),
        "plan": describe_plan(plan, shown_key=rules.shown_key, allowed=rules.allowed).splitlines(),
    }
    return _text(document)


@dataclass(frozen=True, kw_only=True)
class Reopening:
    """The request of a person who has looked at an action. before: how often it was reopened before, so that no sheet
    counts twice. state, outcome: what the store says of it.
    """

    contract: str
    environment: str
    action_id: UUID
    by: str
    reason: str
    before: int
    state: str
    outcome: Mapping[str, Any]


def reopening_sheet(reopening: Reopening, *, made_at_utc: datetime) -> str:
    """The text that a second person reads and signs before an action is reopened."""
    what = "Whoever signs this agrees that the next plan may repair this action's break again, and has looked."
    document = {"what": what, "made_at_utc": made_at_utc.isoformat()} | asdict(reopening)
    return _text(document | {"action_id": str(reopening.action_id), "outcome": dict(reopening.outcome)})


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1) + "\n"


def read_signed(
    sheet_file: Path, sheet_of: Callable[[datetime], str], *, signers: Mapping[PublicKey, str], now_utc: datetime
) -> SignedApproval:
    """Return who signed a sheet; the signature stands beside it, in a file whose name ends in .sig.

    sheet_of: what it has to say, made at that time. now_utc: by the verdict store's clock. Raises ApprovalRefused.
    """
    sheet, signature = _read(sheet_file), _read(sheet_file.with_name(f"{sheet_file.name}.sig"))
    made_at_utc = _made_at(sheet, sheet_file)
    if sheet != sheet_of(made_at_utc).encode():
        raise ApprovalRefused(
            f"{sheet_file}: it does not say what would be done now, in this environment; expected the sheet as "
            "Tallystick prints it for that, unchanged"
        )
    if made_at_utc > now_utc + _CLOCKS_APART:
        raise ApprovalRefused(
            f"{sheet_file}: made at {format_time(made_at_utc)}, and it is {format_time(now_utc)} by the verdict "
            "store's clock; expected a time that has passed"
        )
    key = _signing_key(sheet, signature, sheet_file)
    if key not in signers:
        raise ApprovalRefused(
            f"{sheet_file}.sig: signed with {key.sha256_str()}, which {SIGNERS_VARIABLE} does not list; expected the "
            "key of somebody whom it names"
        )
    return SignedApproval(
        signer=signers[key],
        made_at_utc=made_at_utc,
        key_fingerprint=key.sha256_str(),
        document_sha256=sha256(sheet).hexdigest(),
    )


def read_signers(environment: Mapping[str, str] = os.environ) -> dict[PublicKey, str]:
    """Read the signers that count, key to name, from the file that TALLYSTICK_ALLOWED_SIGNERS names.

    Raises ApprovalRefused.
    """
    named = environment.get(SIGNERS_VARIABLE)
    if not named:
        raise ApprovalRefused(
            f"{SIGNERS_VARIABLE} is not set; expected the path of a file with a line 'NAME ssh-ed25519 KEY' for each "
            "person whose signature counts"
        )
    file = Path(named)
    try:
        if file.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise ApprovalRefused(f"{file}: group or others may write it; expected a file that only its owner may")
        lines = load_allowed_signers_file(file)
        return {PublicKey.from_openssh_str(f"{line.key_type} {line.base64_key}"): _one_name(line) for line in lines}
    except OSError as error:
        raise ApprovalRefused(f"{SIGNERS_VARIABLE}: {file}: {error.strerror}; expected a readable file") from None
    except (ValueError, NotImplementedError) as error:
        raise ApprovalRefused(
            f"{file}: {escape_untrusted(str(error))}; expected lines 'NAME ssh-ed25519 KEY', with an ed25519 or RSA key"
        ) from None


def _one_name(line: AllowedSigner) -> str:
    name, options = line.principals, line.options or {}
    if any(character in name for character in ",*?!"):
        raise ValueError(f"{name!r} is a pattern or a list, and a key is one person's")
    if set(options) - {"namespaces"} or NAMESPACE not in options.get("namespaces", NAMESPACE).split(","):
        raise ValueError(f"of the options of {name!r} only namespaces={NAMESPACE} is understood")
    return name


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ApprovalRefused(
            f"{file}: {error.strerror}; expected the sheet, and beside it what ssh-keygen -Y sign -n {NAMESPACE} made"
        ) from None
    if len(content) > _BYTES_MAX:
        raise ApprovalRefused(f"{file}: over {_BYTES_MAX} bytes; expected a sheet or its signature")
    return content


def _made_at(sheet: bytes, file: Path) -> datetime:
    try:
        made_at = datetime.fromisoformat(json.loads(sheet)["made_at_utc"])
        made_at.astimezone(UTC)  # a last day of the calendar that is no day there
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        made_at = None
    if made_at is None or made_at.tzinfo is None:
        raise ApprovalRefused(f"{file}: no sheet that Tallystick has printed; expected one, unchanged")
    return made_at


def _signing_key(sheet: bytes, signature: bytes, file: Path) -> PublicKey:
    try:
        return check_signature(sheet, signature, NAMESPACE)
    except (InvalidSignature, NotImplementedError, ValueError, AssertionError, EOFError, OverflowError) as error:
        raise ApprovalRefused(
            f"{file}.sig: not a valid signature of {file.name}: {escape_untrusted(str(error)) or 'unreadable'}; "
            f"expected "
            f"what ssh-keygen -Y sign -n {NAMESPACE} made of it with an ed25519 or RSA key"
        ) from None
