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

--> Optimize covers: optimize
OPTIMIZE hr.emp;

--> Optimize covers: optimize, partition_spec
optimize emp PARTITION (p = 1);

--> Optimize covers: optimize, where
OPTIMIZE emp WHERE p >= date '2024-01-01' AND q IN ('a', 'b');

--> Optimize covers: optimize
OPTIMIZE optimize;

--> Vacuum covers: vacuum
VACUUM hr.emp;

--> Vacuum covers: vacuum, number
VACUUM emp RETAIN 0.5 HOURS;

--> Vacuum covers: vacuum
vacuum vacuum DRY RUN RETAIN 168 HOURS;

--> Query covers: query_statement
SELECT optimize, vacuum.detail FROM vacuum JOIN optimize ON optimize.id = vacuum.id;

--> Update covers: update
UPDATE optimize SET vacuum = 1 WHERE detail = 2;
