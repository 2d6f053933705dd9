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

--> Reset covers: reset
RESET;

--> Reset covers: reset, setting
RESET acidsql.lock.timeout;

--> Explain covers: explain
EXPLAIN EXTENDED SELECT * FROM emp;

--> Explain covers: explain
EXPLAIN UPDATE emp SET a = 1;

--> Explain covers: explain
EXPLAIN FORMATTED DELETE FROM emp WHERE id = 1;

--> Explain covers: explain
EXPLAIN INSERT INTO emp SELECT * FROM src;

--> Explain covers: explain
EXPLAIN EXTENDED FROM src INSERT INTO a SELECT 1 INSERT INTO b SELECT 2;

--> Explain covers: explain
EXPLAIN TRUNCATE TABLE emp;

--> Explain covers: explain
EXPLAIN ALTER TABLE emp PARTITION (p = 1) COMPACT 'major' AND WAIT;

--> Explain covers: explain
EXPLAIN FORMATTED OPTIMIZE emp WHERE p = 1;

--> Explain covers: explain
EXPLAIN VACUUM emp RETAIN 24 HOURS;
