--> Passthrough covers: passthrough
ALTER TABLE emp ADD COLUMNS (x int AFTER y, s.f string);

--> Passthrough covers: passthrough
ALTER TABLE emp ADD COLUMNS (x int CHECK (x > 0));

--> Passthrough covers: passthrough
ALTER TABLE emp CHANGE COLUMN s.f TYPE int;

--> Passthrough covers: passthrough
ALTER TABLE emp ALTER COLUMN a TYPE int, b COMMENT 'x';

--> Passthrough covers: passthrough
ALTER TABLE emp RENAME COLUMN s.f TO g;

--> Passthrough covers: passthrough
ALTER TABLE emp DROP COLUMNS (a, s.f);

--> Passthrough covers: passthrough
ALTER TABLE emp RECOVER PARTITIONS;

--> Passthrough covers: passthrough
ALTER VIEW v AS SELECT 1;

--> Passthrough covers: passthrough
INSERT OVERWRITE DIRECTORY '/out' USING parquet SELECT * FROM emp;

--> Passthrough covers: passthrough
DROP TABLE IDENTIFIER(:name);

--> Passthrough covers: passthrough
SET TIME ZONE 'UTC';

--> Passthrough covers: passthrough
SHOW FUNCTIONS;

--> Passthrough covers: passthrough
TRUNCATE TABLE emp COLUMNS (a);

--> Passthrough covers: passthrough
ANALYZE TABLES IN hr COMPUTE STATISTICS;

--> Passthrough covers: passthrough
CREATE TABLE a LIKE FILE ORC '/in/file';

--> Passthrough covers: passthrough
CREATE VIEW v DEFAULT COLLATION UTF8_BINARY AS SELECT 1;

--> Passthrough covers: passthrough
DESCRIBE emp s.f;

--> Passthrough covers: passthrough
DESCRIBE EXTENDED emp AS JSON;

--> Passthrough covers: passthrough
FROM emp INSERT OVERWRITE DIRECTORY '/out' SELECT * INSERT INTO a SELECT 1;

--> Passthrough covers: passthrough
OPTIMIZE sales WHERE day = '2024-01-01' ZORDER BY (customer);

--> Passthrough covers: passthrough
OPTIMIZE '/data/sales';

--> Passthrough covers: passthrough
VACUUM sales LITE;

--> Passthrough covers: passthrough
VACUUM '/data/sales' RETAIN 100 HOURS;

--> Passthrough covers: passthrough
DESCRIBE DETAIL '/data/sales';
