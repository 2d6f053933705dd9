"""The settings: every name of Hive's that operators know is there, or answered; the table of them is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.errors import InvalidValue
from acidsql.metastore import open_metastore
from acidsql.settings import IGNORED, REGISTRY, Settings
from docs import settings_table

HIVE = {
    "hive.compactor.worker.timeout": "86400s",
    "hive.compactor.cleaner.run.interval": "5000ms",
    "hive.compactor.check.interval": "300s",
    "hive.compactor.delta.num.threshold": "10",
    "hive.compactor.delta.pct.threshold": "0.1",
    "hive.compactor.abortedtxn.threshold": "1000",
    "hive.compactor.aborted.txn.time.threshold": "12h",
    "hive.compactor.max.num.delta": "500",
    "hive.compactor.job.queue": "",
    "hive.compactor.wait.timeout": "300000ms",
    "hive.compactor.cleaner.retention.time.seconds": "300s",
    "hive.compactor.cleaner.retry.maxattempts": "5",
    "hive.compactor.initiator.failed.compacts.threshold": "2",
    "hive.compactor.history.retention.succeeded": "3",
    "hive.compactor.history.retention.failed": "3",
    "hive.compactor.history.retention.did.not.initiate": "2",
    "hive.compactor.history.retention.refused": "3",
    "hive.compactor.history.retention.timeout": "7d",
    "hive.txn.timeout": "300s",
    "hive.txn.heartbeat.threadpool.size": "5",
    "hive.timedout.txn.reaper.start": "100s",
    "hive.timedout.txn.reaper.interval": "180s",
    "hive.txn.max.open.batch": "1000",
    "hive.max.open.txns": "100000",
    "hive.lock.numretries": "100",
    "hive.lock.sleep.between.retries": "60s",
}
"""Names and defaults of Hive 4."""
ON = {
    "hive.compactor.initiator.on": "true",
    "hive.compactor.cleaner.on": "true",
    "hive.compactor.worker.threads": "1",
}
"""Names of Hive 4 with defaults of our own: Hive's are false, false and 0, and one of its servers is told otherwise."""


@pytest.mark.parametrize(("name", "default"), [*HIVE.items(), *ON.items()])
def test_a_setting_of_hives_has_its_name_a_known_default_and_an_effect_that_is_told(name: str, default: str) -> None:
    setting = REGISTRY[name]
    assert setting.default == default
    assert setting.doc.endswith(".")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("hive.compactor.worker.thread", "hive.compactor.worker.threads"),
        ("metastore.compactor.initiator.off", "hive.compactor.initiator.on"),
        ("hive.txn.heartbeat.threadpool", "hive.txn.heartbeat.threadpool.size"),
        ("acidsql.layout", "acidsql.compactor.layout"),
    ],
)
def test_a_name_that_nobody_knows_is_answered_with_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Settings().set(name, "1")
    assert caught.value.hint == f"Did you mean {nearest}?"


def test_a_setting_answers_to_its_names_in_a_metastores_configuration_and_in_hive_3() -> None:
    settings = Settings({"metastore.compactor.initiator.on": "false"})
    settings.set("hive.compactor.history.retention.attempted", "7")
    assert settings["hive.compactor.initiator.on"] == "false"
    assert settings["hive.compactor.history.retention.did.not.initiate"] == "7"


def test_what_has_no_effect_here_is_taken_and_kept() -> None:
    settings = Settings({"hive.compactor.crud.query.based": "true"})
    settings.set("metastore.compactor.run.as.user", "hive")
    assert settings["hive.compactor.crud.query.based"] == "true"
    assert settings["hive.compactor.run.as.user"] == "hive"
    assert settings["hive.txn.strict.locking.mode"] == ""
    assert not IGNORED.keys() & REGISTRY.keys()


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("hive.compactor.wait.timeout", "300000", 300.0),
        ("hive.compactor.cleaner.run.interval", "5000", 5.0),
        ("hive.compactor.worker.sleep.time", "250", 0.25),
        ("hive.compactor.aborted.txn.time.threshold", "2", 7200.0),
        ("hive.compactor.history.retention.timeout", "1", 86400.0),
        ("hive.txn.timeout", "30", 30.0),
        ("hive.txn.timeout", " 1min ", 60.0),
        ("acidsql.read.lease", "30", 30.0),
    ],
)
def test_a_bare_number_is_of_the_unit_that_hive_means(name: str, text: str, seconds: float) -> None:
    assert Settings({name: text}).value(REGISTRY[name]) == seconds


def test_workers_of_a_pool_have_a_setting_of_hives() -> None:
    settings = Settings({"hive.compactor.worker.Slow.threads": "2"})
    assert settings.worker_pools == {"slow": 2}
    assert settings["hive.compactor.worker.slow.threads"] == "2"
    with pytest.raises(InvalidValue, match="takes a whole number, not 'many'"):
        settings.set("hive.compactor.worker.slow.threads", "many")


def test_there_is_one_manager_of_transactions() -> None:
    Settings().set("hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager")
    with pytest.raises(InvalidValue, match="the only transaction manager"):
        Settings().set("hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager")


def test_every_default_is_a_value_that_its_setting_takes() -> None:
    for setting in REGISTRY.values():
        setting.parse(setting.default)


def test_no_more_transactions_than_a_batch_are_opened_by_one_call(tmp_path: Path) -> None:
    settings = Settings({"hive.txn.max.open.batch": "3"})
    store = open_metastore(f"sqlite:///{tmp_path}/acidsql.db", settings, warehouse=str(tmp_path))
    try:
        assert store.open_txns(5, user="ann", host="desk") == [1, 2, 3]
        assert store.open_txns(2, user="ann", host="desk") == [4, 5]
    finally:
        store.close()


# --- docs/settings.md ------------------------------------------------------------------------------------------------


def test_the_table_is_that_of_todays_settings() -> None:
    text = settings_table.TABLE.read_text(encoding="utf-8")
    assert settings_table.with_tables(text, settings_table.document()) == text, "run: make settings"


def test_the_table_has_a_row_for_every_setting() -> None:
    listed = [setting for _, found in settings_table.sections() for setting in found]
    assert sorted(setting.name for setting in listed) == sorted(REGISTRY)
    assert all(settings_table.kind_of(setting) != "None" for setting in listed)
