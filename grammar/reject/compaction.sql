--> ParseError 1:24 Expected a type of compaction in quotes, found the end
ALTER TABLE emp COMPACT;

--> ParseError 1:25 Expected a type of compaction in quotes, found 'minor'
ALTER TABLE emp COMPACT minor;

--> ParseError 1:48 Expected a number of buckets, found 'four'
ALTER TABLE emp COMPACT 'major' CLUSTERED INTO four BUCKETS;

--> ParseError 1:32 Expected the end of the statement, found 'AND'
ALTER TABLE e COMPACT 'minor'  AND HOPE;

--> ParseError 1:42 Expected the end of the statement, found 'AND'
ALTER TABLE emp COMPACT 'minor' POOL 'p' AND WAIT;

--> ParseError 1:38 Expected a pool in quotes, found 'p'
ALTER TABLE emp COMPACT 'minor' POOL p;

--> ParseError 1:38 Expected OVERWRITE, found 'TBLPROPERTIES'
ALTER TABLE emp COMPACT 'minor' WITH TBLPROPERTIES ('a' = 'b');

--> ParseError 1:41 Expected BY, found 'a'
ALTER TABLE e COMPACT 'rebalance' ORDER a;

--> ParseError 1:41 Expected an expression, found the end
ALTER TABLE emp COMPACT 'minor' ORDER BY;

--> ParseError 1:38 Expected a condition, found the end
ALTER TABLE emp COMPACT 'minor' WHERE;

--> ParseError 1:29 Expected the end of the statement, found 'AND'
ALTER TABLE emp CONCATENATE AND WAIT;

--> ParseError 1:33 Expected the id of a compaction, found 'x'
SHOW COMPACTIONS COMPACTIONID = x;

--> ParseError 1:27 Expected a type of compaction in quotes, found 'major'
SHOW COMPACTIONS emp TYPE major;

--> ParseError 1:43 Expected the end of the statement, found 'POOL'
SHOW COMPACTIONS emp STATUS 'succeeded'   POOL 'p';

--> ParseError 1:33 Expected a column of SHOW COMPACTIONS, found '1'
SHOW COMPACTIONS emp   ORDER BY 1;

--> ParseError 1:28 Expected a number of rows, found 'ten'
SHOW COMPACTIONS emp LIMIT ten;

--> ParseError 1:7 Expected TRANSACTIONS or COMPACTIONS, found '7'
ABORT 7;

--> ParseError 1:19 Expected the id of a transaction, found the end
ABORT TRANSACTIONS;

--> ParseError 1:21 Expected the id of a transaction, found ','
ABORT TRANSACTIONS 1, 2;

--> ParseError 1:19 Expected the id of a compaction, found 'all'
ABORT COMPACTIONS all;

--> ParseError 1:9 Expected a table name, found the end
OPTIMIZE;

--> ParseError 1:14 Expected the end of the statement, found 'FAST'
OPTIMIZE emp FAST;

--> ParseError 1:19 Expected a condition, found the end
OPTIMIZE emp WHERE;

--> ParseError 1:19 Expected a number of hours, found 'some'
VACUUM emp RETAIN some HOURS;

--> ParseError 1:21 Expected HOURS, found 'DAYS'
VACUUM emp RETAIN 7 DAYS;

--> ParseError 1:20 Expected the end of the statement, found 'DRY'
VACUUM emp DRY RUN DRY RUN;

--> ParseError 1:21 Expected the end of the statement, found 'id'
DESCRIBE DETAIL emp id;
