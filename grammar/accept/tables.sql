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

--> CreateTable covers: spark_constraint
CREATE TABLE t (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id + 1) COMMENT 'x', CONSTRAINT c CHECK (id > 0)) USING delta;

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

--> CreateTempView covers: create_temp_view, view_column
CREATE OR REPLACE TEMP VIEW v (a COMMENT 'x', b) COMMENT 'a view' TBLPROPERTIES ('k' = 'v') AS SELECT id, name FROM emp;

--> CreateTempView covers: create_temp_view
CREATE GLOBAL TEMPORARY VIEW global_temp.v AS TABLE emp;
