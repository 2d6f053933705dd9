--> Use covers: use
USE hr;

--> Use covers: use, database
USE DATABASE spark_catalog.`my db`;

--> Set covers: set
SET;

--> Set covers: set, setting
SET hive.txn.timeout;

--> Set covers: set, setting
SET `a.b` = any text, 'with ; in a string' and = signs;

--> Explain covers: explain
EXPLAIN EXTENDED SELECT * FROM emp;

--> Explain covers: explain
EXPLAIN UPDATE emp SET a = 1;
