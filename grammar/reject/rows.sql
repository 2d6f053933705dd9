--> ParseError 1:8 Expected FROM, found 'emp'
DELETE emp;

--> ParseError 1:8 Expected INTO or OVERWRITE
INSERT emp VALUES (1);

--> ParseError 1:16 Expected VALUES, SELECT or another query, found the end
INSERT INTO emp;

--> ParseError 1:31 Expected , or ), found the end
INSERT INTO emp VALUES (1, 'a';

--> ParseError 1:25 Expected a value, found ')'
INSERT INTO emp VALUES ();

--> ParseError 1:30 Expected , or ), found '1'
INSERT INTO emp PARTITION (p 1) VALUES (1);

--> ParseError 1:33 IF NOT EXISTS belongs to INSERT OVERWRITE, found 'IF'
INSERT INTO emp PARTITION (p=1) IF NOT EXISTS SELECT 1;

--> ParseError 1:28 Expected VALUES, SELECT or another query, found 'IF'
INSERT OVERWRITE TABLE emp IF NOT EXISTS SELECT 1;

--> ParseError 1:40 IF NOT EXISTS belongs to INSERT OVERWRITE, found 'IF'
FROM s INSERT INTO emp PARTITION (p=1) IF NOT EXISTS SELECT a;

--> ParseError 1:19 Expected SET, found '='
UPDATE emp salary = 1;

--> ParseError 1:27 Expected a condition, found the end
UPDATE emp SET a = 1 WHERE;

--> ParseError 2:9 Expected a value, found 'WHERE'
UPDATE emp
SET a = WHERE id = 1;

--> ParseError 1:23 Expected the rest of the expression
UPDATE emp SET a = b +;

--> ParseError 1:18 x.a is not a column of the updated table
UPDATE emp e SET x.a = 1;

--> ParseError 1:18 Expected =, found '1'
UPDATE emp SET a 1;

--> ParseError 1:12 The name test-table must be back-quoted
UPDATE test-table SET a = 1;

--> ParseError 1:16 Expected a name after the dot, found the end
DELETE FROM hr.;

--> ParseError 1:30 Expected the end of the statement, found ','
DELETE FROM emp WHERE id = 1 , 2;

--> ParseError 1:35 Expected SET, found '='
WITH c AS (SELECT 1) UPDATE emp a = 1;

--> ParseError 1:6 Expected a table or a query in parentheses after FROM, found 'INSERT'
FROM INSERT INTO t SELECT 1;

--> ParseError 1:22 Expected SELECT, found 'VALUES'
FROM s INSERT INTO t VALUES (1);

--> ParseError 1:22 Expected SELECT, found 'INSERT'
FROM s INSERT INTO t INSERT INTO u SELECT 1;

--> ParseError 1:31 Expected the end of the statement, found ')'
FROM s INSERT INTO t SELECT a )  INSERT INTO u SELECT b;

--> ParseError 1:15 Expected a table name, found the end
TRUNCATE TABLE;

--> ParseError 1:20 Expected the end of the statement, found 'WHERE'
TRUNCATE TABLE emp WHERE id = 1;

--> ParseError 1:6 Expected DATA, found 'INPATH'
LOAD INPATH '/in' INTO TABLE emp;

--> ParseError 1:18 Expected a path in quotes, found '/'
LOAD DATA INPATH /in INTO TABLE emp;

--> ParseError 1:30 Expected TABLE, found 'emp'
LOAD DATA INPATH '/in'  INTO emp;

--> ParseError 1:18 Expected COMPUTE, found the end
ANALYZE TABLE emp ;

--> ParseError 1:51 Expected COLUMNS, found 'id'
ANALYZE TABLE hr.emp     COMPUTE STATISTICS   FOR id;

--> ParseError 1:43 Expected the end of the statement, found 'QUICKLY'
ANALYZE TABLE hr.emp   COMPUTE STATISTICS QUICKLY;

--> ParseError 1:54 Expected SERDE, found the end
LOAD DATA INPATH '/in' INTO TABLE emp INPUTFORMAT 'a' ;
