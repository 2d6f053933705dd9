"""What this version needs of Spark's internals, looked for before it is used."""

from __future__ import annotations

from pyspark.sql import SparkSession

from acidsql.catalyst.java import Java
from acidsql.catalyst.plans import CTE, JOIN, REPARTITION, SHUFFLING, SUBQUERY, WINDOW_CLAUSE
from acidsql.catalyst.streams import OFFSET, RELATION, STREAMING, moved
from acidsql.errors import UnsupportedError

_SQL = "org.apache.spark.sql"
_NEEDED = {
    "org.apache.spark.SparkStatusTracker": ("getJobIdsForTag",),
    "org.apache.spark.scheduler.LiveListenerBus": ("waitUntilEmpty",),
    f"{_SQL}.catalyst.analysis.Analyzer": ("WindowsSubstitution",),
    f"{_SQL}.catalyst.analysis.CTESubstitution": ("apply",),
    f"{_SQL}.catalyst.analysis.DeduplicateRelations": ("apply",),
    f"{_SQL}.catalyst.analysis.BindParameters": ("apply",),
    f"{_SQL}.catalyst.analysis.NameParameterizedQuery": (),
    f"{_SQL}.catalyst.analysis.UnresolvedRelation": ("multipartIdentifier", "isStreaming"),
    f"{_SQL}.catalyst.analysis.RelationTimeTravel": ("relation", "timestamp", "version"),
    f"{_SQL}.catalyst.analysis.PlanWithUnresolvedIdentifier": ("identifierExpr", "planBuilder"),
    f"{_SQL}.catalyst.catalog.TempVariableManager": ("isEmpty",),
    f"{_SQL}.connector.catalog.CatalogManager": ("tempVariableManager",),
    f"{_SQL}.catalyst.catalog.SessionCatalog": (
        "getGlobalTempView",
        "getTempView",
        "globalTempDatabase",
        "isTemporaryFunction",
        "listTemporaryFunctions",
    ),
    f"{_SQL}.catalyst.FunctionIdentifier": (),
    f"{_SQL}.catalyst.expressions.Alias": (),
    f"{_SQL}.catalyst.expressions.Cast": ("canANSIStoreAssign",),
    f"{_SQL}.catalyst.expressions.CreateNamedStruct": (),
    f"{_SQL}.catalyst.expressions.KnownNullable": (),
    f"{_SQL}.catalyst.expressions.Literal$": ("apply", "create"),
    f"{_SQL}.catalyst.optimizer.InlineCTE": ("apply",),
    f"{_SQL}.catalyst.trees.TreePattern": (
        "CURRENT_LIKE",
        CTE,
        JOIN,
        "PYTHON_UDF",
        REPARTITION,
        SUBQUERY,
        WINDOW_CLAUSE,
        *SHUFFLING,
    ),
    f"{_SQL}.catalyst.plans.logical.Project": ("hiddenOutputTag",),
    f"{_SQL}.catalyst.plans.logical.Range": ("numSlices",),
    f"{_SQL}.catalyst.plans.logical.Repartition": (),
    f"{_SQL}.catalyst.plans.logical.SubqueryAlias": (),
    f"{_SQL}.catalyst.plans.logical.Union": (),
    f"{_SQL}.catalyst.plans.logical.UnresolvedHint": (),
    f"{_SQL}.catalyst.plans.logical.Join": ("condition", "hint", "joinType"),
    f"{_SQL}.catalyst.trees.TreeNode": (
        "containsAnyPattern",
        "containsPattern",
        "nodeName",
        "transformDown",
        "withNewChildren",
        "setTagValue",
    ),
    f"{_SQL}.catalyst.plans.QueryPlan": ("transformExpressions", "transformUpWithSubqueries"),
    f"{_SQL}.catalyst.plans.logical.AnalysisHelper": ("setAnalyzed",),
    f"{_SQL}.classic.Dataset": ("ofRows", "queryExecution"),
    f"{_SQL}.classic.ExpressionUtils": ("expression", "column"),
    f"{_SQL}.classic.SparkSession": (
        "baseRelationToDataFrame",
        "cloneSession",
        "expression",
        "internalCreateDataFrame",
        "leafNodeDefaultParallelism",
        "newSession",
        "sessionState",
    ),
    f"{_SQL}.execution.LogicalRDD": ("rdd",),
    f"{_SQL}.execution.LogicalRDD$": ("apply",),
    f"{_SQL}.execution.QueryExecution": ("prepareExecutedPlan", "sparkPlan", "toRdd"),
    f"{_SQL}.execution.datasources.DataSourceStrategy$": ("translateFilter",),
    f"{_SQL}.execution.datasources.HadoopFsRelation": ("location", "sizeInBytes", "sparkSession"),
    f"{_SQL}.execution.datasources.InMemoryFileIndex": ("allFiles", "inputFiles"),
    f"{_SQL}.execution.datasources.NoopCache$": (),
    f"{_SQL}.execution.datasources.PartitionSpec": ("emptySpec",),
    f"{_SQL}.execution.datasources.orc.OrcFileFormat": (),
    f"{_SQL}.execution.datasources.orc.OrcFilters": ("createFilter",),
    f"{_SQL}.execution.datasources.parquet.ParquetFileFormat": (),
    f"{STREAMING}.Source": ("getBatch", "schema"),
    f"{_SQL}.connector.read.streaming.SupportsTriggerAvailableNow": ("latestOffset", "prepareForTriggerAvailableNow"),
    f"{_SQL}.internal.SQLConf": ("filesMaxPartitionBytes", "filesOpenCostInBytes"),
    f"{_SQL}.internal.VariableSubstitution": ("substitute",),
}
"""Classes and methods that this room calls."""

_checked: set[str] = set()
"""The Spark applications that have been looked into."""


def check(spark: SparkSession) -> None:
    """Make sure that this Spark has what is needed of it.

    Raises:
        UnsupportedError: Naming what is missing, when it has not.
    """
    java = Java.of(spark)
    if spark.sparkContext.applicationId in _checked:
        return
    loader = java.static("java.lang.Thread", "currentThread")().getContextClassLoader()
    for name, methods in _NEEDED.items():
        try:
            found = str(java.static("scala.runtime.ScalaRunTime", "stringOf")(loader.loadClass(name).getMethods()))
        except Exception as e:  # whatever a class loader throws
            raise _missing(spark, name) from e
        for method in methods:
            if f".{method}(" not in found:
                raise _missing(spark, f"{name}.{method}")
    for name in (RELATION, OFFSET):
        moved(java, name)
    _checked.add(spark.sparkContext.applicationId)


def _missing(spark: SparkSession, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"PySpark {spark.version} is not supported: it has no {name}",
        hint="Supported are PySpark 4.0 and the newer 4.x that this version of acidsql was tested with.",
    )
