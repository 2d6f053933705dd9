--> Passthrough covers: passthrough
ALTER TABLE hr.emp RENAME TO hr.people;

--> Passthrough covers: passthrough
ALTER TABLE emp ADD COLUMNS (x int AFTER y, s.f string);

--> Passthrough covers: passthrough
ALTER TABLE emp ADD COLUMNS (x int CHECK (x > 0));

--> Passthrough covers: passthrough
ALTER TABLE emp PARTITION (p = 1) SET LOCATION '/data/p';

--> Passthrough covers: passthrough
ALTER TABLE emp CHANGE COLUMN a b int;

--> Passthrough covers: passthrough
ALTER VIEW v AS SELECT 1;

--> Passthrough covers: passthrough
MERGE INTO emp t USING src s ON t.id = s.id WHEN MATCHED THEN DELETE;

--> Passthrough covers: passthrough
TRUNCATE TABLE emp PARTITION (p = 1);

--> Passthrough covers: passthrough
ANALYZE TABLE emp COMPUTE STATISTICS;

--> Passthrough covers: passthrough
CREATE VIEW v AS SELECT * FROM emp;

--> Passthrough covers: passthrough
CREATE TABLE a LIKE b;

--> Passthrough covers: passthrough
DESCRIBE emp id;

--> Passthrough covers: passthrough
INSERT OVERWRITE DIRECTORY '/out' USING parquet SELECT * FROM emp;

--> Passthrough covers: passthrough
FROM emp INSERT INTO a SELECT id INSERT INTO b SELECT name;

--> Passthrough covers: passthrough
LOAD DATA INPATH '/in' INTO TABLE emp;

--> Passthrough covers: passthrough
DROP TABLE IDENTIFIER(:name);

--> Passthrough covers: passthrough
SET TIME ZONE 'UTC';

--> Passthrough covers: passthrough
SHOW FUNCTIONS;
