--> CreateTable covers: create_table, element, column, type, table_clause, stored_as, properties, property
CREATE TABLE emp (id int, name string, salary int) STORED AS ORC TBLPROPERTIES('transactional'='true');

--> CreateTable covers: column_option, comment, partitioned_by, partition_column, location, clustered_by, sorted_column
CREATE TRANSACTIONAL TABLE IF NOT EXISTS hr.emp (
  id int NOT NULL ENABLE COMMENT 'the key',
  name varchar(20) DEFAULT concat('a', 'b') NOT NULL,
  prices map<string, array<struct<a: int, b: decimal(10, 2)>>>,
  seen timestamp with local time zone COMMENT 'when'
)
COMMENT 'people'
PARTITIONED BY (p int COMMENT 'a key', q string)
CLUSTERED BY (id) SORTED BY (id ASC, name) INTO 4 BUCKETS
LOCATION '/data/emp'
TBLPROPERTIES (orc.compress 'ZLIB', 'n' = 5, flag = true);

--> CreateTable covers: row_format, stored_as
CREATE EXTERNAL TABLE t (a int) ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde'
STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat'
OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat';

--> CreateTable covers: using, spark_clause, spark_transform
CREATE TABLE t USING orc OPTIONS (a 'b') PARTITIONED BY (dt, days(ts)) AS SELECT * FROM src;

--> CreateTable covers: spark_constraint, column_constraint
CREATE TABLE t (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id + 1) COMMENT 'x', CONSTRAINT c CHECK (id > 0)) USING delta;

--> CreateTable covers: table_constraint, column_constraint, references, constraint_name, traits
CREATE TRANSACTIONAL TABLE t (a int, b int CONSTRAINT b_there UNIQUE DISABLE, c int REFERENCES hr.u (a) NOT ENFORCED RELY,
  CONSTRAINT pk PRIMARY KEY (a, b) DISABLE NOVALIDATE RELY, UNIQUE (c) DISABLE NOVALIDATE,
  CONSTRAINT fk FOREIGN KEY (a, b) REFERENCES hr.u (x, y) DISABLE NOVALIDATE NORELY);

--> CreateTable covers: check, constraint_name, traits, column_option, element
CREATE TRANSACTIONAL TABLE t (a int CHECK (a > 0) ENABLE NOVALIDATE RELY, b int CONSTRAINT b_there NOT NULL ENABLE,
  c int CONSTRAINT c_one DEFAULT 1, CONSTRAINT sums CHECK (a + b > c) ENFORCED, CHECK (b IN (1, 2)));

--> CreateTable covers: create_table, clustered_by
CREATE TABLE t CLUSTERED BY (a) INTO 8 BUCKETS STORED AS ORC TBLPROPERTIES ('transactional' = 'true') AS SELECT 1 AS a;

--> CreateTable covers: traits
CREATE TABLE t (a int NOT NULL DISABLE NOVALIDATE, b int CHECK (b > 0) NOT ENFORCED) USING parquet;

--> CreateTable covers: create_table, partition_column
CREATE TRANSACTIONAL TABLE t PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS p;

--> CreateTable covers: create_table, create_like
CREATE TABLE IF NOT EXISTS hr.a LIKE hr.b LOCATION '/data/a' TBLPROPERTIES ('transactional' = 'true');

--> CreateTable covers: word
CREATE TABLE t (table string, date date, comment string COMMENT 'c', default int DEFAULT 1);

--> DropTable covers: drop_table
DROP TABLE IF EXISTS hr.emp PURGE;

--> RepairTable covers: repair_table
MSCK REPAIR TABLE hr.emp;

--> RepairTable covers: repair_table
MSCK TABLE emp;

--> RepairTable covers: repair_table
REPAIR TABLE emp ADD PARTITIONS;

--> CreateView covers: create_view, view_head, view_column
CREATE OR REPLACE VIEW hr.v (a COMMENT 'x', b) COMMENT 'a view' TBLPROPERTIES ('k' = 'v') AS SELECT id, name FROM emp;

--> CreateView covers: create_view
CREATE VIEW IF NOT EXISTS v AS WITH c AS (SELECT 1 AS a) SELECT * FROM c;

--> DropView covers: drop_view
DROP VIEW IF EXISTS hr.v;

--> CreateTempView covers: create_temp_view, view_column
CREATE OR REPLACE TEMP VIEW v (a COMMENT 'x', b) COMMENT 'a view' TBLPROPERTIES ('k' = 'v') AS SELECT id, name FROM emp;

--> CreateTempView covers: create_temp_view
CREATE GLOBAL TEMPORARY VIEW global_temp.v AS TABLE emp;
