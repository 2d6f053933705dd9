--> ShowDatabases covers: show_databases, like
SHOW DATABASES LIKE 'h*';

--> ShowTables covers: show_tables, like
SHOW TABLES IN hr 'e*';

--> ShowPartitions covers: show_partitions
SHOW PARTITIONS hr.emp PARTITION (p = 1);

--> ShowCreateTable covers: show_create_table
SHOW CREATE TABLE emp;

--> ShowTransactions covers: show_transactions
SHOW TRANSACTIONS;

--> ShowLocks covers: show_locks
SHOW LOCKS;

--> ShowLocks covers: show_locks, partition_spec
SHOW LOCKS hr.emp PARTITION (p = 1) EXTENDED;

--> ShowLocks covers: show_locks
SHOW LOCKS DATABASE hr;

--> Describe covers: describe
DESCRIBE FORMATTED hr.emp;

--> Describe covers: describe
DESC TABLE EXTENDED emp;

--> Describe covers: describe, partition_spec
DESCRIBE FORMATTED emp PARTITION (p = 1) `the name`;

--> Describe covers: describe
DESC emp id;

--> DescribeDatabase covers: describe_database
DESCRIBE SCHEMA EXTENDED spark_catalog.hr;

--> ShowColumns covers: show_columns, like
SHOW COLUMNS IN emp FROM hr LIKE 'i*';

--> ShowColumns covers: show_columns
SHOW COLUMNS FROM hr.emp;

--> ShowProperties covers: show_properties
SHOW TBLPROPERTIES emp ('transactional');

--> ShowProperties covers: show_properties, property_key
SHOW TBLPROPERTIES emp (a.b);

--> ShowViews covers: show_views, like
SHOW VIEWS IN hr LIKE 'v*';

--> DescribeHistory covers: describe_history
DESCRIBE HISTORY hr.emp;

--> DescribeHistory covers: describe_history
DESC HISTORY emp LIMIT 5;

--> Describe covers: describe
DESCRIBE history PARTITION (p = 1);

--> Describe covers: describe
DESCRIBE TABLE history id;

--> DescribeDetail covers: describe_detail
DESCRIBE DETAIL hr.emp;

--> DescribeDetail covers: describe_detail
desc detail detail;

--> Describe covers: describe
DESCRIBE detail;

--> Describe covers: describe
DESCRIBE TABLE detail id;
