"""The report names the slicing and the key index with what they guarantee and leave open."""

from dataclasses import replace

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import CheckResult
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState, TopicSettings
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.run_result import IndexFile, KeyIndex
from tallystick.model.stored_run import StoredRun
from tallystick.report.guarantees import guarantees
from tallystick.report.page import report_page
from tallystick.report.write_report import render_report
from tests.unit.builders import T2T, contract_of
from tests.unit.report.parsed_page import Page


def test_the_slicing_is_named_with_the_guarantee_it_gives(matched_run: StoredRun, contract: Contract) -> None:
    ledger = contract.ledger.model_copy(update={"slice_by": "written_xid"})
    other = contract.model_copy(update={"ledger": ledger})
    assert "By xmin" in render_report(matched_run, contract)
    assert "By the column written_xid" in render_report(matched_run, other)
    grows = {"kind": "jdbc", "order_by": "entry_id", "overlap": 10}
    weaker = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=grows)})
    assert "By the column entry_id with an overlap of 10, weaker than a horizon" in render_report(matched_run, weaker)
    files = {"kind": "parquet", "quiet_seconds": 60}
    listed = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=files)})
    assert "By path and modification manifest: each file is read once" in render_report(matched_run, listed)
    table = contract.model_copy(update={"ledger": contract.ledger.model_copy(update={"kind": "iceberg"})})
    assert "By snapshots of the table: a snapshot is in sight when it is committed" in render_report(matched_run, table)


def test_by_written_xid_the_report_says_what_is_seen_and_what_is_not(matched_run: StoredRun) -> None:
    def says(**ledger: object) -> str:
        table = {"connection": "ledger_billing", "table": "billing.payout", "slice_by": "written_xid"}
        return dict(guarantees(matched_run, contract_of(ledger=table | ledger)))["Ledger slices"]

    for one in (says(), says(earlier_rows="archived", compared_windows=24)):
        assert "a row without an id, with an older one or with one that was not given out yet is in no cut" in one
        assert "A deleted row and one that comes into the same slice between two runs cancel out" in one
        assert "strong" not in one
    assert "A row that was read and is deleted later shows in its slice's count, once" in says()
    assert "Rows that are deleted later are not seen" in says(earlier_rows="archived")
    assert "Not seen: a row whose amount, currency or key is changed after it was paired" in says()
    assert "What the rows of 24 windows back say is read again and compared" in says(compared_windows=24)


def test_that_kafkas_own_client_saw_other_bytes_is_said_and_how_little_it_reads(matched_run: StoredRun) -> None:
    def says(of: Contract, *doubts: DoubtFound) -> str:
        run = replace(matched_run, result=replace(matched_run.result, doubts=doubts))
        return dict(guarantees(run, of))["Read committed"]

    other = DoubtFound(doubt=Doubt.READERS_DISAGREE, sentence="s", details={"client_rows": 3})
    counted = DoubtFound(doubt=Doubt.READERS_DISAGREE, sentence="s", details={"census_rows": 3})
    assert "10,000 of these offsets again and saw other bytes in 1 partition." in says(contract_of(), other)
    assert "10,000 of these offsets again and saw the same bytes." in says(contract_of(), counted)
    assert "at most 10,000 of these offsets a side again" in says(contract_of(T2T))


def test_what_is_compared_besides_money_is_named_with_its_rule(matched_run: StoredRun) -> None:
    compare = {"status": "exact", "fee": {"abs": 1}, "note": "ignore"}
    said = dict(guarantees(matched_run, contract_of(compare=compare)))["Compared columns"]
    assert said.startswith("Each pair agrees in its money and in fee (abs 1), status (exact text).")
    assert "Compared columns" not in dict(guarantees(matched_run, contract_of()))


def test_of_rows_from_a_standby_the_report_says_so(matched_run: StoredRun) -> None:
    for slice_by in ("xmin", "written_xid"):
        table = {"connection": "ledger_billing", "table": "billing.payout", "slice_by": slice_by}
        there, here = (
            dict(guarantees(matched_run, contract_of(ledger=table | more)))["Ledger slices"]
            for more in ({"primary_connection": "ledger_primary"}, {})
        )
        assert there.startswith(here)
        assert "Rows were read on a standby, up to its own horizon" in there.removeprefix(here)


def test_the_index_of_keys_is_named_with_its_size_its_horizon_and_what_it_leaves_open(matched_run: StoredRun) -> None:
    index = KeyIndex(copies=4, kept_from=1, files=(IndexFile(path="a", size_bytes=62, sha256="0"),))
    run = replace(matched_run, result=replace(matched_run.result, key_index=index))
    lines = dict(guarantees(run, contract_of(T2T)))
    assert "in the last 168 windows" in lines["Key index"]
    assert "holds 4 copies in 62 bytes, 15.5 bytes a copy" in lines["Key index"]
    assert "Ledger slices" not in lines
    assert "either side" in lines["Key index"]
    assert "either side" not in dict(guarantees(matched_run, contract_of()))["Key index"]
    seeded = replace(matched_run, result=replace(matched_run.result, key_index=replace(index, seed=7)))
    assert not seeded.result.of_inputs
    memory = dict(guarantees(seeded, contract_of()))["Key index"]
    assert "of the last 168 windows: one that comes again is a duplicate" in memory
    assert "holds 4 copies in 62 bytes" in memory
    assert "None: this run is older" in dict(guarantees(matched_run, contract_of()))["Key index"]
    page = render_report(run, contract_of(T2T))
    assert "pairs of output and input agree" in page
    assert ">Input topic</th>" in page
    assert ">Ledger</th>" in render_report(matched_run, contract_of())


def test_the_config_check_is_told_by_the_settings_that_the_run_stored(
    matched_run: StoredRun, contract: Contract
) -> None:
    unread = report_page(matched_run, contract).config_check
    assert {line.standing for line in unread if line.setting == "cleanup.policy"} == {CheckResult.UNKNOWN}
    read = TopicSettings(
        topic="billing.fees",
        replication_factor=3,
        in_sync_replicas=3,
        min_insync_replicas=1,
        unclean_leader_election=False,
        cleanup_policy=("delete",),
        retention_ms=-1,
        retention_bytes=-1,
        message_timestamp_type="CreateTime",
    )
    look_ups = {
        "surroundings": CLUSTER_STATE.dump_python(ClusterState(topic_settings=(read,)), mode="json", by_alias=True)
    }
    run = replace(matched_run, result=replace(matched_run.result, look_ups=look_ups))
    standings = {
        line.setting: line.standing for line in report_page(run, contract).config_check if line.scope == "billing.fees"
    }
    assert standings["min.insync.replicas"] is CheckResult.AT_RISK
    assert standings["cleanup.policy"] is CheckResult.OK
    assert "set 2 with three replicas" in Page(render_report(run, contract)).text


def test_a_run_that_read_nothing_claims_no_guarantee_of_a_reader(
    closed_run: StoredRun, baseline_run: StoredRun, matched_run: StoredRun, contract: Contract
) -> None:
    of_readers = {"Key index", "Captured in order", "Grace", "Empty windows"}
    for unread in (closed_run, baseline_run):
        said = dict(guarantees(unread, contract))
        assert said["Read committed"].startswith("This run read nothing")
        assert not of_readers & set(said)
        assert "By xmin" in said["Ledger slices"]
    read = dict(guarantees(matched_run, contract))
    assert of_readers < set(read)
    assert "Tallystick read" in read["Read committed"]
    inputs = contract_of(T2T)
    assert "Ledger slices" not in dict(guarantees(closed_run, inputs))


def test_a_baseline_claims_no_config_check(baseline_run: StoredRun, contract: Contract) -> None:
    baseline = replace(baseline_run, cut=replace(baseline_run.cut, n=0))
    assert "This run read no settings." in Page(render_report(baseline, contract)).text
