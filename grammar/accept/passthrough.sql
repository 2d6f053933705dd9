--> Passthrough covers: passthrough
ALTER TABLE hr.emp ADD COLUMNS (x int);

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
