"""A command or an option by its old name is refused with a sentence that has the new one; the new one works."""

import pytest

from tallystick.cli.renamed import COMMANDS as RENAMED
from tallystick.cli.renamed import OPTIONS
from tests.unit.cli.command_line import COMMANDS, run

WHO = ("--by", "Ada")


@pytest.mark.parametrize(
    ("old", "sentence"),
    [
        (("posture", "none.yaml"), "`tallystick posture` has a new name: use `tallystick check-config`\n"),
        (("posture",), "`tallystick posture` has a new name: use `tallystick check-config`\n"),
        (("posture", "--help"), "`tallystick posture` has a new name: use `tallystick check-config`\n"),
        (
            ("compensation", "act", "none.yaml", "hash", *WHO),
            "`tallystick compensation act` has a new name: use `tallystick compensation execute`\n",
        ),
        (("compensation", "stop", *WHO, "--because", "it hangs"), "`--because` has a new name: use `--reason`\n"),
        (("compensation", "stop", "--because=it hangs"), "`--because` has a new name: use `--reason`\n"),
        (("compensation", "allow", *WHO, "--because", "mended"), "`--because` has a new name: use `--reason`\n"),
    ],
    ids=" ".join,
)
def test_an_old_name_is_refused_by_a_sentence_with_the_new_one(old: tuple[str, ...], sentence: str) -> None:
    result = run(*old)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", sentence)


@pytest.mark.parametrize(
    ("new", "beginning"),
    [
        (("check-config", "none.yaml"), "none.yaml: no such file"),
        (("compensation", "execute", "none.yaml", "hash", *WHO), "none.yaml: no such file"),
        (("compensation", "stop", *WHO, "--reason", "it hangs"), "the verdict store is not named"),
        (("compensation", "allow", *WHO, "--reason=--because"), "the verdict store is not named"),
    ],
    ids=" ".join,
)
def test_a_new_name_is_heard(new: tuple[str, ...], beginning: str) -> None:
    result = run(*new)
    assert result.stderr.startswith(beginning)
    assert "new name" not in result.stderr


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (("compensation", "posture"), "No such command 'posture'"),
        (("act",), "No such command 'act'"),
        (("runs", "--because", "it hangs"), "No such option: --because"),
        (("compensation", "stop", "--becuse", "it hangs"), "No such option: --becuse"),
    ],
    ids=" ".join,
)
def test_a_name_that_nothing_ever_had_is_wrong_usage_and_no_old_name(wrong: tuple[str, ...], complaint: str) -> None:
    result = run(*wrong)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "new name" not in result.stderr


def test_every_old_command_is_gone_and_every_new_one_is_there() -> None:
    names = {" ".join(command) for command in COMMANDS}
    assert set(RENAMED) & names == set()
    assert set(RENAMED.values()) <= names


def test_no_help_lists_an_old_name() -> None:
    for group in ((), ("compensation",), ("compensation", "stop"), ("compensation", "allow")):
        words = run(*group, "--help").output.split()
        assert [old for old in (*RENAMED, *OPTIONS) if old.split()[-1] in words] == []
