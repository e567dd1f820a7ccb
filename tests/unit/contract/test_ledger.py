"""A contract's ledger of every kind, field by field."""

from tests.unit.contract.documents import BY_COLUMN, INPUTS, TO_TOPIC, FieldCases, shown

RECEIPT = {"receipt_partition": "sent_partition", "receipt_offset": "sent_offset"}
WITH_RECEIPT = {"connection": "l", "table": "a.b", "slice_by": "written_xid", "columns": RECEIPT}

IN_FILES = {"kind": "parquet", "quiet_seconds": 60}
IN_SNAPSHOTS = {"kind": "iceberg"}


class TestFields(FieldCases):
    refused = (
        ({"ledger__tabel": "ledger.posting"}, "ledger.tabel: unknown key; expected 'table'?"),
        ({"ledger__table": "posting"}, 'ledger.table: got "posting"; expected schema.table, such as ledger.posting'),
        ({"ledger__columns__leg": "Leg"}, 'ledger.columns.leg: got "Leg"; expected a column name in lower case'),
        (
            {"ledger__columns__leg": {"constant": "payout"}},
            "; got leg {constant: payout} with legs invoice, payment; expected the name of a field that tells",
        ),
        (
            {"ledger__columns__currency": {"constant": "eur"}},
            'ledger.columns.currency.constant: got "eur"; expected an',
        ),
        ({"ledger__columns__amount_minor": {"constant": "1"}}, 'ledger.columns.amount_minor.constant: got "1"; expect'),
        (
            {"ledger__table": "a.b.c"},
            "; expected schema.table with kind postgres: only jdbc and iceberg have a name before it",
        ),
        ({"ledger__table": 'shop."Or`ders"'}, 'ledger.table: got "shop.'),
        ({"ledger__columns__leg": {"header": "id"}}, 'ledger.columns.leg: got {"header": "id"}; expected a name, or a'),
        ({"ledger__where": ""}, 'ledger.where: got ""; expected some text'),
        ({"ledger__slice_by": "ctid"}, "ledger.slice_by: got \"ctid\"; expected 'xmin' or 'written_xid'"),
        (
            {"ledger__columns": {"receipt_offset": "sent_offset"}},
            'ledger.columns: got {"receipt_offset": "sent_offset"}; '
            "expected receipt_partition and receipt_offset together, or neither",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", "columns": RECEIPT}},
            'ledger: got {"connection": "l", "table": "a.b", "columns": {"receipt_partition": "sent_parti...; '
            "expected slice_by: written_xid with receipt columns: storing a receipt updates the row",
        ),
        (
            {"direction": "topic_to_ledger", "ledger": {**WITH_RECEIPT}},
            'ledger: got {"connection": "l", "table": "a.b", "slice_by": "written_xid", "columns": {"rece...; '
            "expected no receipt columns with direction topic_to_ledger: its rows are the consumer's",
        ),
        ({"ledger__amount_unit": "Major"}, "ledger.amount_unit: got \"Major\"; expected 'minor' or 'major'"),
        (
            {"ledger__consumer_isolation": "serializable"},
            "ledger.consumer_isolation: got \"serializable\"; expected 'read_committed' or 'read_uncommitted'",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", "consumer_isolation": "read_uncommitted"}},
            'ledger: got {"connection": "l", "table": "a.b", "consumer_isolation": "read_uncommitted"}; '
            "expected no consumer_isolation with direction ledger_to_topic: no consumer writes the ledger",
        ),
        # kinds of ledgers
        (
            {"ledger__kind": "oracle"},
            "ledger.kind: got \"oracle\"; expected 'postgres', 'jdbc', 'parquet', 'iceberg' or 'topic'",
        ),
        *(
            ({"ledger": {"connection": "l", "table": "a.b", **stated}}, ("; " + told))
            for stated, told in (
                ({"order_by": "entry_id"}, "expected no order_by with kind postgres: only jdbc is read by it"),
                ({"overlap": 0}, "expected no overlap with kind postgres: only jdbc is read by it"),
                ({"kind": "jdbc", "overlap": 0}, "expected order_by with kind jdbc: the column that grows"),
                ({"kind": "jdbc", "order_by": "n"}, "expected overlap with kind jdbc: how far behind the newest"),
                ({**BY_COLUMN, "slice_by": "written_xid"}, "expected no slice_by with kind jdbc: only postgres slices"),
                (
                    {**BY_COLUMN, "quiet_seconds": 9},
                    "expected no quiet_seconds with kind jdbc: only parquet is read by",
                ),
                ({"horizon": "innodb"}, "expected no horizon with kind postgres: only jdbc has a choice"),
                ({**BY_COLUMN, "horizon": "innodb"}, "expected no overlap with horizon innodb: rows wait for open"),
                ({"kind": "parquet"}, "expected quiet_seconds with kind parquet: how long a file that is still"),
                ({**IN_FILES, "where": "true"}, "expected no where and no receipt columns with kind parquet"),
                ({**IN_FILES, "columns": RECEIPT}, "expected no where and no receipt columns with kind parquet"),
                ({**IN_FILES, "amount_unit": "major"}, "expected amount_unit minor with kind parquet"),
                (
                    {**BY_COLUMN, "primary_connection": "p"},
                    "expected no primary_connection with kind jdbc: only postgres",
                ),
                ({**IN_SNAPSHOTS, "where": "true"}, "expected no where and no receipt columns with kind iceberg"),
                ({**IN_SNAPSHOTS, "amount_unit": "major"}, "expected amount_unit minor with kind iceberg"),
                ({**IN_SNAPSHOTS, "slice_by": "written_xid"}, "expected no slice_by with kind iceberg: only postgres"),
                ({**IN_SNAPSHOTS, "quiet_seconds": 9}, "expected no quiet_seconds with kind iceberg: only parquet"),
                ({**IN_FILES, "primary_connection": "p"}, "expected no primary_connection with kind parquet: only"),
            )
        ),
        # input topics
        (
            {"ledger": INPUTS},
            f"ledger: got {shown(INPUTS)}; got kind topic with direction ledger_to_topic; expected kind",
        ),
        (
            {"direction": "topic_to_topic", "ledger": {"connection": "l", "table": "a.b"}},
            'ledger: got {"connection": "l", "table": "a.b"}; got kind postgres with direction topic_to_topic;',
        ),
        ({"ledger": {"connection": "l"}}, "ledger.table: missing; expected a value: schema.table"),
        (
            TO_TOPIC | {"ledger": {"kind": "topic", "connection": "k"}},
            "ledger.topics: missing; expected a value: the input topics",
        ),
        (
            TO_TOPIC | {"ledger": INPUTS | {"topics": ["in", "in"]}},
            'ledger.topics: got ["in", "in"]; expected each input topic once',
        ),
        (
            TO_TOPIC | {"ledger": INPUTS | {"topics": ["billing.payments"]}},
            'ledger: got {"kind": "topic", "connection": "k", "topics": ["billing.payments"]}; expected input topics '
            "of other names than the legs' and the stray topics: 'billing.payments' is one of them; also on another",
        ),
        *(
            (TO_TOPIC | {"ledger": INPUTS | {name: value}}, f"ledger: got {shown(INPUTS | {name: value})}; {refused}")
            for name, value, refused in (
                ("where", "a = 1", "expected no where with kind topic"),
                ("table", "a.b", "expected no table with kind topic"),
                ("columns", {"leg": "x"}, "expected no columns with kind topic"),
                ("primary_connection", "p", "expected no primary_connection with kind topic: only postgres"),
            )
        ),
        *(
            (
                {"ledger": {"connection": "l", "table": "a.b", name: value}},
                f"ledger: got {shown({'connection': 'l', 'table': 'a.b', name: value})}; expected no {name} with kind",
            )
            for name, value in (("topics", ["in"]), ("event", {"leg": "x"}))
        ),
        (TO_TOPIC | {"ledger": INPUTS | {"index_windows": 0}}, "ledger.index_windows: got 0; expected more than 0"),
    )

    read = (
        {"ledger__table": 'shop."Order Rows"', "ledger__columns": {"match_key": '"eventId"', "row_id": '"user"'}},
        {"ledger": {"connection": "l", **BY_COLUMN, "table": 'main.shop."Orders"'}},
        {"ledger__slice_by": "written_xid"},
        {"ledger__primary_connection": "ledger_primary"},
        {"ledger": {**WITH_RECEIPT}},
        {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN}},
        {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN, "amount_unit": "major"}},
        {"ledger": {"connection": "l", "table": "a.b", "kind": "jdbc", "order_by": "n", "horizon": "innodb"}},
        {"ledger": {"connection": "l", "table": "a.b", **IN_FILES}},
        {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN, "columns": RECEIPT}},
        {"direction": "topic_to_ledger", "ledger__consumer_isolation": "read_uncommitted"},
        TO_TOPIC,
        TO_TOPIC | {"ledger": INPUTS | {"event": {"match_key": "request_id"}, "amount_unit": "major"}},
    )
