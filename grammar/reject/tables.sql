--> ParseError 1:25 Expected a type, found ')'
CREATE TABLE t (a int, b);

--> ParseError 1:19 Expected a type, found `int`
CREATE TABLE t (a `int`);

--> ParseError 1:29 Expected >, found the end
CREATE TABLE t (a array<int) ;

--> ParseError 1:23 Expected COMMENT, NOT NULL, DEFAULT, CHECK, , or )
CREATE TABLE t (a int nothing);

--> ParseError 1:30 Expected an expression after DEFAULT
CREATE TABLE t (a int DEFAULT);

--> ParseError 1:24 Expected a clause of CREATE TABLE
CREATE TABLE t (a int) FOO BAR;

--> ParseError 1:37 Duplicate clause COMMENT
CREATE TABLE t (a int) COMMENT 'x'  COMMENT 'y';

--> ParseError 1:46 Expected a number of buckets
CREATE TABLE t (a int) CLUSTERED BY (a) INTO many BUCKETS;

--> ParseError 1:43 Expected a value for property a
CREATE TABLE t (a int) TBLPROPERTIES ('a'=b);

--> ParseError 1:33 Expected a location in quotes
CREATE TABLE t (a int) LOCATION /data;

--> ParseError 1:62 Expected a type for the partition key
CREATE TRANSACTIONAL TABLE t (a int, p int) PARTITIONED BY (p);

--> ParseError 1:20 Expected a table name, found the end
CREATE TABLE a LIKE;

--> ParseError 1:29 Expected a condition in parentheses, found 'a'
CREATE TABLE t (a int CHECK a > 0);

--> ParseError 1:31 Expected a condition, found ')'
CREATE TABLE t (a int, CHECK ());

--> UnsupportedError 1:50 A column can have only one CHECK
CREATE TRANSACTIONAL TABLE t (a int CHECK (a>0)  CHECK (a < 9));

--> ParseError 1:48 Expected (, found the end
CREATE TABLE t (a int, CONSTRAINT p PRIMARY KEY;

--> ParseError 1:43 Expected REFERENCES, found ')'
CREATE TABLE t (a int, FOREIGN KEY (a)    );

--> UnsupportedError 1:24 GENERATED is not supported for ACID tables
CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY) TBLPROPERTIES ('transactional' = 'true');

--> UnsupportedError 1:38 OPTIONS is not supported for ACID tables
CREATE TRANSACTIONAL TABLE t (a int) OPTIONS ('a' = 'b');

--> ParseError 1:11 Expected a table name, found the end
DROP TABLE ;

--> ParseError 1:6 Expected TABLE, found 'emp'
MSCK emp;

--> ParseError 1:24 Expected AS and a query, found 'SELECT'
CREATE TEMP VIEW v (a) SELECT 1;

--> ParseError 1:30 Expected a query, found '1'
CREATE TEMPORARY VIEW v AS   1;

--> ParseError 1:15 Expected AS and a query, found 'SELECT'
CREATE VIEW v SELECT 1;

--> ParseError 1:17 Expected a query, found the end
CREATE VIEW v AS ;

--> ParseError 1:12 Expected a view name, found the end
CREATE VIEW;

--> ParseError 1:13 Expected the end of the statement, found 'CASCADE'
DROP VIEW v CASCADE;

--> UnsupportedError 1:54 A partition key cannot have a CHECK
CREATE TRANSACTIONAL TABLE t (a int) PARTITIONED BY (p int CHECK (p > 3));
