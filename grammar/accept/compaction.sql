--> Compact covers: compact, alter_table
ALTER TABLE emp COMPACT 'minor';

--> Compact covers: compact, partition_spec
ALTER TABLE hr.emp PARTITION (p = 1, q = 'a') COMPACT 'MAJOR' AND WAIT;

--> Compact covers: compact, order_by, where, properties
ALTER TABLE emp COMPACT 'rebalance' CLUSTERED INTO 4 BUCKETS AND WAIT POOL 'nightly'
  WITH OVERWRITE TBLPROPERTIES ('compactor.mapreduce.map.memory.mb' = '2048') ORDER BY a DESC NULLS LAST, f(b, c) WHERE p > 1;

--> Compact covers: compact, order_by
ALTER TABLE emp COMPACT 'rebalance' ORDER BY a;

--> Compact covers: compact, where
ALTER TABLE emp COMPACT 'major' WHERE p = 1;

--> Concatenate covers: concatenate, alter_table
ALTER TABLE emp CONCATENATE;

--> Concatenate covers: concatenate, partition_spec
ALTER TABLE hr.emp PARTITION (p = 1) CONCATENATE;

--> ShowCompactions covers: show_compactions
SHOW COMPACTIONS;

--> ShowCompactions covers: show_compactions
SHOW COMPACTIONS COMPACTIONID = 7;

--> ShowCompactions covers: show_compactions
SHOW COMPACTIONS SCHEMA hr TYPE 'major';

--> ShowCompactions covers: show_compactions, partition_spec, sort_key
SHOW COMPACTIONS hr.emp PARTITION (p = 1) POOL 'nightly' TYPE 'minor' STATUS 'ready for cleaning'
  ORDER BY tabname, `compactionid` DESC, starttime ASC LIMIT 5;

--> ShowCompactions covers: show_compactions
SHOW COMPACTIONS STATUS 'failed';

--> ShowCompactions covers: show_compactions, sort_key
SHOW COMPACTIONS ORDER BY state LIMIT 1;

--> ShowCompactions covers: show_compactions
SHOW COMPACTIONS status STATUS 'failed';

--> AbortTransactions covers: abort_transactions
ABORT TRANSACTIONS 7;

--> AbortTransactions covers: abort_transactions
abort transactions 7 8 9;

--> AbortCompactions covers: abort_compactions
ABORT COMPACTIONS 1 2;
