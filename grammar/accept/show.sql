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
