--> ParseError 1:1 Expected a statement, found nothing
;

--> ParseError 1:9 More than one statement
SELECT 1; SELECT 2;

--> ParseError 1:8 The string is not closed
SELECT 'it
is;

--> ParseError 1:8 The quoted name is not closed
SELECT `a;

--> ParseError 1:10 The comment is not closed
SELECT 1 /* and /* so */ on;

--> ParseError 1:10 Expected ), found the end
SELECT (1;

--> ParseError 1:11 Expected ), found ']'
SELECT (1 ];

--> ParseError 1:9 Expected the end of the statement, found ')'
SELECT 1);

--> ParseError 1:8 Expected a name for the query, found '('
WITH   (SELECT 1) SELECT 2;

--> ParseError 1:22 Expected a query, INSERT, UPDATE, DELETE or MERGE after the WITH clause
WITH c AS (SELECT 1) DROP TABLE c;

--> ParseError 1:8 Expected AS and a query in parentheses, found 'SELECT'
WITH c SELECT 1;

--> ParseError 1:8 Expected a statement to explain, found the end
EXPLAIN;

--> ParseError 1:4 Expected a database name, found the end
USE;

--> ParseError 1:5 Expected the name of a setting, found '='
SET = 5;

--> ParseError 1:28 Expected a comment in quotes, found 'x'
CREATE DATABASE hr COMMENT x;

--> ParseError 1:20 Expected COMMENT, LOCATION, WITH DBPROPERTIES or the end of the statement
CREATE DATABASE my hr;

--> ParseError 1:18 Expected the end of the statement, found 'x'
DROP DATABASE hr x;

--> ParseError 1:17 Expected a table name, found 'x'
SHOW PARTITIONS 'x';

--> ParseError 1:18 Expected a pattern in quotes, found 'emp'
SHOW TABLES LIKE emp;

--> ParseError 1:19 Expected the end of the statement, found 'WHERE'
SHOW TRANSACTIONS WHERE 1 = 1;

--> ParseError 1:9 Expected a table name, found the end
DESCRIBE;

--> UnsupportedError 1:1 BEGIN is not supported
BEGIN;

--> UnsupportedError 1:1 BEGIN is not supported
BEGIN TRANSACTION;

--> ParseError 1:14 Expected FROM or IN, found 'emp'
SHOW COLUMNS emp;

--> ParseError 1:27 The table is in hr, not in sales
SHOW COLUMNS IN hr.emp IN sales;

--> ParseError 1:19 Expected a table name, found the end
SHOW TBLPROPERTIES;

--> ParseError 1:25 Expected a property name, found ')'
SHOW TBLPROPERTIES emp ();

--> ParseError 1:31 Expected the end of the statement, found 'b'
DESCRIBE FORMATTED emp    id  b;

--> ParseError 1:22 Expected the end of the statement, found 'x'
DESCRIBE DATABASE hr x;

--> UnsupportedError 1:1 LOCK TABLE is not supported: each statement takes the locks that it needs
LOCK TABLE emp EXCLUSIVE;

--> UnsupportedError 1:1 UNLOCK DATABASE is not supported
UNLOCK DATABASE hr;

--> UnsupportedError 1:1 EXPORT TABLE is not supported
EXPORT TABLE emp TO '/out';

--> UnsupportedError 1:1 IMPORT is not supported
IMPORT TABLE emp FROM '/in';

--> ParseError 1:28 Expected a number of rows, found 'many'
DESCRIBE HISTORY emp LIMIT many;
