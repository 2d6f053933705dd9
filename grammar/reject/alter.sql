--> ParseError 1:12 Expected a table name, found the end
ALTER TABLE;

--> ParseError 1:34 Expected (, found the end
ALTER TABLE emp SET TBLPROPERTIES ;

--> ParseError 1:41 Expected a value for property a
ALTER TABLE emp SET TBLPROPERTIES ('a' =);

--> ParseError 1:42 Expected , or ), found '='
ALTER TABLE emp UNSET TBLPROPERTIES ('a' = 'b');

--> ParseError 1:41 Expected the end of the statement, found 'IF'
ALTER TABLE e UNSET TBLPROPERTIES ('a') IF EXISTS;

--> ParseError 1:31 Expected a type, found ')'
ALTER TABLE emp ADD COLUMNS (a);

--> ParseError 1:35 Expected , or ), found the end
ALTER TABLE emp ADD COLUMNS (a int ;

--> ParseError 1:36 Expected COMMENT, NOT NULL, DEFAULT, CHECK, , or ), found 'nothing'
ALTER TABLE emp ADD COLUMNS (a int nothing);

--> ParseError 1:31 Expected = and a value, found ','
ALTER TABLE t ADD PARTITION (p, q = 1);

--> ParseError 1:37 Expected a value, found ')'
ALTER TABLE emp ADD PARTITION (p =  );

--> ParseError 1:47 Expected a location in quotes, found the end
ALTER TABLE emp ADD PARTITION (p = 1) LOCATION;

--> ParseError 1:40 Expected the end of the statement, found 'PARTITION'
ALTER TABLE emp DROP PARTITION (p = 1) PARTITION (p = 2);

--> ParseError 1:39 Expected PARTITION, found '('
ALTER TABLE emp DROP PARTITION (p=1), (p = 2);

--> UnsupportedError 1:35 Partitions can only be selected with =, not with >=
ALTER TABLE emp DROP PARTITION (p >= 1);

--> UnsupportedError 1:35 Partitions can only be selected with =, not with LIKE
ALTER TABLE emp DROP PARTITION (p LIKE 'a%');

--> ParseError 1:35 Expected (, found 'a'
ALTER TABLE emp   REPLACE COLUMNS a int;

--> ParseError 1:35 Expected a type, found ')'
ALTER TABLE emp REPLACE COLUMNS (a);

--> ParseError 1:25 Expected a new name for the column, found the end
ALTER TABLE emp CHANGE a;

--> ParseError 1:27 Expected a type, found the end
ALTER TABLE emp CHANGE a b;

--> ParseError 1:37 Expected a column name, found the end
ALTER TABLE emp CHANGE a b int AFTER;

--> ParseError 1:33 Expected an action on the column, found 'b'
ALTER TABLE emp ALTER COLUMN  a b int;

--> ParseError 1:36 Expected a type, found the end
ALTER TABLE emp ALTER COLUMN a TYPE;

--> ParseError 1:32 Expected TO, found the end
ALTER TABLE emp RENAME COLUMN a;

--> ParseError 1:36 Expected a new name for the column, found '1'
ALTER TABLE emp RENAME COLUMN a TO 1;

--> ParseError 1:30 Expected a column name, found the end
ALTER TABLE emp  DROP COLUMNS;

--> ParseError 1:33 Expected , or ), found the end
ALTER TABLE emp  DROP COLUMNS (a ;

--> ParseError 1:26 Expected a table name, found the end
ALTER TABLE emp RENAME TO;

--> ParseError 1:29 Expected a location in quotes, found the end
ALTER TABLE emp SET LOCATION;

--> ParseError 1:28 Expected a value for each partition key, found 'p'
ALTER TABLE emp PARTITION (p) RENAME TO PARTITION (p = 1);

--> ParseError 1:57 Expected = and a value, found ')'
ALTER TABLE emp PARTITION (p = 1) RENAME TO PARTITION (p);

--> ParseError 1:26 Expected PARTITION and its keys, found 'WITH'
ALTER TABLE emp EXCHANGE WITH TABLE other;

--> ParseError 1:49 Expected TABLE, found 'other'
ALTER TABLE emp EXCHANGE PARTITION (p = 1) WITH other;

--> ParseError 1:36 Expected CHECK, PRIMARY KEY, UNIQUE or FOREIGN KEY, found 'NOT'
ALTER TABLE emp ADD CONSTRAINT abc NOT NULL;

--> ParseError 1:34 Expected a name for the constraint, found '('
ALTER TABLE emp   ADD CONSTRAINT (a);

--> ParseError 1:42 Expected a condition in parentheses, found 'a'
ALTER TABLE emp ADD CONSTRAINT abc CHECK a > 0;

--> ParseError 1:50 Expected the end of the statement, found 'ALWAYS'
ALTER TABLE emp ADD CONSTRAINT abc CHECK (a > 0) ALWAYS;

--> ParseError 1:32 Expected the name of a constraint, found the end
ALTER TABLE emp DROP CONSTRAINT ;
