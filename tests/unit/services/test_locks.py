"""The lock files of the servers, as their code expects them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.services import hive, maven, metastore31, postgres

CLASSIFIER = "{http://ant.apache.org/ivy/maven}classifier"
LOCKS = pytest.mark.parametrize("lock", [hive.LOCK, metastore31.LOCK], ids=lambda lock: lock.name)


@LOCKS
def test_the_distribution_with_the_schema_comes_first_and_only_jars_follow(lock: Path) -> None:
    first, *others = maven.read_lock(lock)

    assert (first.classifier, first.extension) == ("bin", "tar.gz")
    assert {artifact.extension for artifact in others} == {"jar"}


@LOCKS
def test_nothing_is_named_twice(lock: Path) -> None:
    artifacts = [(a.group, a.name, a.version, a.classifier) for a in maven.read_lock(lock)]

    assert len(set(artifacts)) == len(artifacts)


def test_hives_own_jar_is_the_first_of_its_class_path_and_log4j_1_the_last() -> None:
    _, *jars = maven.read_lock(hive.LOCK)

    assert (jars[0].name, jars[-1].name) == ("hive-exec", "reload4j")
    assert jars[0].version == hive.VERSION


def test_the_last_of_the_metastore_is_the_agent() -> None:
    artifacts = maven.read_lock(metastore31.LOCK)

    assert artifacts[0].version == metastore31.VERSION
    assert artifacts[-1].name == "byteman"


@LOCKS
def test_postgresqls_driver_is_among_the_jars(lock: Path) -> None:
    assert "postgresql" in {artifact.name for artifact in maven.read_lock(lock)}


def test_there_is_a_postgresql_for_each_kind_of_machine() -> None:
    artifacts = maven.read_lock(postgres.LOCK)

    for machine in postgres._MACHINES.values():
        (found,) = (artifact for artifact in artifacts if artifact.name.endswith(machine))
        assert found.version == postgres.VERSION


def test_both_mean_the_same_file_by_the_same_name() -> None:
    hives = {artifact.path: artifact.sha256 for artifact in maven.read_lock(hive.LOCK)}

    for artifact in maven.read_lock(metastore31.LOCK):
        assert hives.get(artifact.path, artifact.sha256) == artifact.sha256


def test_ivy_is_asked_for_each_file_and_for_nothing_it_depends_on() -> None:
    sha256 = "0" * 64
    plain = maven.Artifact("org.a", "b", "1", "", "jar", sha256)
    archive = maven.Artifact("org.a", "b", "1", "bin", "tar.gz", sha256)
    older = maven.Artifact("org.a", "b", "0.9", "", "jar", sha256)

    module = ElementTree.fromstring(maven.ivy_file([plain, archive, older]))

    found = [
        (d.get("rev"), d.get("transitive"), [(a.get("ext"), a.get(CLASSIFIER)) for a in d])
        for d in module.iterfind("dependencies/dependency")
    ]
    assert found == [("1", "false", [("jar", None), ("tar.gz", "bin")]), ("0.9", "false", [("jar", None)])]
    assert (plain.path, archive.retrieved) == ("org/a/b/1/b-1.jar", "org.a/b/1/b-1-bin.tar.gz")


def test_a_line_that_is_no_artifact_is_refused_with_its_number(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    lock.write_text("# a comment\n\norg.a:b:1 abc\n", encoding="utf-8")

    with pytest.raises(maven.DownloadError, match=r"x\.lock:3 is not"):
        maven.read_lock(lock)
