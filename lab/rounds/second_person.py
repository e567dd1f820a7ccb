"""The second person of the lab: has an SSH key, and signs the sheet of a plan as `ssh-keygen -Y sign` does."""

from hashlib import sha512
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sshsig.sshsig import SshsigSignature, SshsigWrapper

NAMESPACE = "tallystick-approval"


def signature_of(sheet: bytes, key: Ed25519PrivateKey, *, namespace: str = NAMESPACE) -> bytes:
    """Armoured, in the format of OpenSSH's PROTOCOL.sshsig."""
    wrapped = SshsigWrapper(
        namespace=namespace.encode(), hash_algo=b"sha512", hash=sha512(sheet).digest(), reserved=b""
    ).to_bytes()
    made = SshsigSignature.__new__(SshsigSignature)
    made.public_key = _strings(b"ssh-ed25519", key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    made.namespace, made.hash_algo = namespace.encode(), b"sha512"
    made.signature = _strings(b"ssh-ed25519", key.sign(wrapped))
    return made.to_armored().encode()


def public_line(key: Ed25519PrivateKey) -> str:
    """As it stands in a list of allowed signers, after the name."""
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


class SecondPerson:
    """Called grace. folder: where the list of signers lies."""

    def __init__(self, folder: Path) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._signers = folder / "allowed_signers"
        self._signers.write_text(f"grace {public_line(self._key)}\n")
        self._signers.chmod(0o600)

    @property
    def environment(self) -> dict[str, str]:
        """What lets the command line know the key."""
        return {"TALLYSTICK_ALLOWED_SIGNERS": str(self._signers)}

    def sign(self, sheet: Path) -> None:
        """Write the signature beside it."""
        sheet.with_name(f"{sheet.name}.sig").write_bytes(signature_of(sheet.read_bytes(), self._key))


def _strings(*parts: bytes) -> bytes:
    """SSH's encoding of strings: RFC 4251, section 5."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
