--> Truncate covers: truncate
TRUNCATE TABLE hr.emp;

--> Truncate covers: truncate, partition_spec
TRUNCATE emp PARTITION (p = 1);

--> LoadData covers: load_data
LOAD DATA INPATH 'hdfs://namenode/in' INTO TABLE emp;

--> LoadData covers: load_data, partition_spec
LOAD DATA LOCAL INPATH '/in/*.orc' OVERWRITE INTO TABLE hr.emp PARTITION (p = 1, q = 'a');

--> LoadData covers: load_data, partition_spec
LOAD DATA INPATH '/in' INTO TABLE emp PARTITION (p = 1, q)
INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat' SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe';

--> Analyze covers: analyze
ANALYZE TABLE emp COMPUTE STATISTICS;

--> Analyze covers: analyze, partition_spec
ANALYZE TABLE hr.emp PARTITION (p = 1, q) COMPUTE STATISTICS NOSCAN;

--> Analyze covers: analyze
ANALYZE TABLE emp COMPUTE STATISTICS FOR COLUMNS id, `the name`;

--> Analyze covers: analyze
ANALYZE TABLE emp COMPUTE STATISTICS FOR ALL COLUMNS;
