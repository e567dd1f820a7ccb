"""Where artifacts lie, by what the environment says: a folder, a store of objects, or a refusal in words."""

import json
from pathlib import Path

import pytest

from tallystick.connections.connections import artifacts_folder
from tallystick.host.artifacts import (
    ArtifactMissing,
    ArtifactsRefused,
    ObjectPlace,
    artifacts_place,
    copies_of,
    delete_folder,
    folders_in,
    is_there,
    names_below,
    read_bytes,
    whole_file,
)

S3 = {"TALLYSTICK_ARTIFACTS_DIR": "s3://bucket/some/prefix/"}


def options_of(environment: dict[str, str]) -> dict[str, object]:
    place = artifacts_place(environment)
    assert isinstance(place, ObjectPlace)
    return dict(place.store.options)


def test_a_folder_stays_a_path() -> None:
    assert artifacts_place({}) == artifacts_folder({}) == Path.cwd() / "build/artifacts"
    nearby = {"TALLYSTICK_ARTIFACTS_DIR": "nearby"}  # a worker of Spark's has another working folder
    assert artifacts_place(nearby) == artifacts_folder(nearby) == Path.cwd() / "nearby"
    assert artifacts_place({"TALLYSTICK_ARTIFACTS_DIR": "/srv/tally"}) == Path("/srv/tally")


@pytest.mark.parametrize("name", ["file", "file/x"])
def test_a_file_in_place_of_the_folder_is_refused_by_the_setting(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactsRefused, match=f"TALLYSTICK_ARTIFACTS_DIR: got {tmp_path / name}, but .*file is no"):
        artifacts_place({"TALLYSTICK_ARTIFACTS_DIR": str(tmp_path / name)})
    assert artifacts_place({"TALLYSTICK_ARTIFACTS_DIR": str(tmp_path / "none")}) == tmp_path / "none"


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs", "abfss"])
def test_an_address_is_a_place_whose_text_is_the_address(scheme: str) -> None:
    place = artifacts_place({"TALLYSTICK_ARTIFACTS_DIR": f"{scheme}://bucket/some/prefix/"})
    assert str(place / "reports" / "x" / "7.html") == f"{scheme}://bucket/some/prefix/reports/x/7.html"


@pytest.mark.parametrize(
    "address",
    [
        "hdfs://host/x",
        "http://host/x",
        "s3://key:secret@bucket/x",
        "s3://bucket/x?secret_key=s3cret",
        "gs://user@bucket/x",
        "s3:///x",
    ],
)
def test_an_address_that_is_not_known_or_has_an_account_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ArtifactsRefused, match="TALLYSTICK_ARTIFACTS_DIR: expected") as told:
        artifacts_place({"TALLYSTICK_ARTIFACTS_DIR": address})
    assert "secret@" not in str(told.value) and "s3cret" not in str(told.value)


def test_azures_account_may_stand_in_the_address_as_its_clients_write_it() -> None:
    options = options_of({"TALLYSTICK_ARTIFACTS_DIR": "abfs://container@account.dfs.core.windows.net/x"})
    assert options == {"account_name": "account"}


def test_aws_endpoint_is_taken_and_the_one_for_s3_goes_first() -> None:
    assert options_of(S3) == {}
    both = S3 | {"AWS_ENDPOINT_URL": "https://all:9", "AWS_ENDPOINT_URL_S3": "http://s3:9000"}
    assert options_of(both) == {"endpoint_override": "s3:9000", "scheme": "http"}
    assert options_of(S3 | {"AWS_ENDPOINT_URL": "https://all:9"}) == {"endpoint_override": "all:9", "scheme": "https"}


def test_a_connection_has_keywords_that_nobody_sees() -> None:
    named = S3 | {"TALLYSTICK_ARTIFACTS_CONN_ID": "team_s3", "AWS_ENDPOINT_URL": "http://other"}
    account = {"access_key": "k", "secret_key": "s3cret", "endpoint_override": "http://s3:9000"}
    given = named | {"TALLYSTICK_CONN_TEAM_S3": json.dumps(account)}
    assert options_of(given) == account | {"endpoint_override": "s3:9000", "scheme": "http"}
    assert "s3cret" not in repr(artifacts_place(given)) + str(artifacts_place(given))


@pytest.mark.parametrize("text", ["", "no JSON s3cret", "[1]", '{"secret_key": ["s3cret"]}'])
def test_a_connection_that_is_no_object_of_keywords_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ArtifactsRefused, match="expected TALLYSTICK_CONN_TEAM_S3 to be a JSON object") as told:
        artifacts_place(S3 | {"TALLYSTICK_ARTIFACTS_CONN_ID": "team_s3", "TALLYSTICK_CONN_TEAM_S3": text})
    assert "s3cret" not in str(told.value)


def test_a_keyword_that_the_file_system_does_not_have_is_told_when_it_is_opened() -> None:
    account = {"TALLYSTICK_ARTIFACTS_CONN_ID": "c", "TALLYSTICK_CONN_C": '{"sekret_key": "s3cret"}'}
    with pytest.raises(ArtifactsRefused, match="S3FileSystem does not take these options") as told:
        read_bytes(artifacts_place(S3 | account) / "x")
    assert "sekret_key" in str(told.value) and "s3cret" not in str(told.value)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x"])
def test_no_name_leads_out_of_a_place(name: str) -> None:
    with pytest.raises(ValueError, match="below the place"):
        artifacts_place(S3) / name


def test_a_folder_is_read_where_it_lies(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a" / "x.txt", below=tmp_path) as unfinished:
        unfinished.write_text("x")
        assert not is_there(tmp_path / "a" / "x.txt")
    assert read_bytes(tmp_path / "a" / "x.txt") == b"x"
    assert (names_below(tmp_path), folders_in(tmp_path)) == (["a/x.txt"], ["a"])
    with copies_of(tmp_path) as copies:
        copies.fetch(["a/x.txt"])
        assert (copies.folder, copies.fetch_folder(tmp_path / "a")) == (tmp_path, tmp_path / "a")
    delete_folder(tmp_path / "a")
    delete_folder(tmp_path / "a")
    for missing in (tmp_path / "a" / "x.txt", tmp_path):
        with pytest.raises(ArtifactMissing, match="no such file lies there"):
            read_bytes(missing)


@pytest.mark.parametrize("name", ["7.parquet", "7.html"])
def test_files_that_are_written_at_once_are_both_whole(tmp_path: Path, name: str) -> None:
    """Beside one of the same stem, and one of the same name by another thread: of these the last one stands."""
    with whole_file(tmp_path / "7.html") as first:
        first.write_text("the fir")
        with whole_file(tmp_path / name) as second:
            second.write_text("the second")
        assert (tmp_path / name).read_text() == "the second"
        with first.open("a") as going_on:
            going_on.write("st")
    assert (tmp_path / "7.html").read_text() == "the first"
    assert names_below(tmp_path) == sorted({"7.html", name}), "and no scratch is left"


def test_a_file_whose_writer_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    (tmp_path / "7.html").write_text("of before")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "7.html") as unfinished:
        unfinished.write_text("ha")
        raise ZeroDivisionError
    assert (names_below(tmp_path), (tmp_path / "7.html").read_text()) == (["7.html"], "of before")
