--> ParseError 1:7 Expected INTO, found 'emp'
MERGE emp USING s ON a = b WHEN MATCHED THEN DELETE;

--> ParseError 1:12 Expected SCHEMA, found 'EVOLUTION'
MERGE WITH EVOLUTION INTO emp USING s ON a = b WHEN MATCHED THEN DELETE;

--> ParseError 1:19 Expected USING, found 'a'
MERGE INTO emp ON a = b WHEN MATCHED THEN DELETE;

--> ParseError 1:22 Expected a table or a query in parentheses, found '1'
MERGE INTO emp USING 1 ON a = b WHEN MATCHED THEN DELETE;

--> ParseError 1:23 Expected a query, found 's'
MERGE INTO emp USING (s) ON a = b WHEN MATCHED THEN DELETE;

--> ParseError 1:31 Expected ), found the end
MERGE INTO emp USING (SELECT 1;

--> ParseError 1:24 Expected ON, found 'WHEN'
MERGE INTO e USING s x WHEN MATCHED THEN DELETE;

--> ParseError 1:38 Expected ON, found 'WHEN'
MERGE INTO emp USING src  USING (id) WHEN MATCHED THEN DELETE;

--> ParseError 1:27 Expected a condition, found 'WHEN'
MERGE INTO emp USING s ON WHEN MATCHED THEN DELETE;

--> ParseError 1:31 Expected the rest of the expression
MERGE INTO emp USING s ON a = WHEN MATCHED THEN DELETE;

--> ParseError 1:32 Expected WHEN MATCHED or WHEN NOT MATCHED, found the end
MERGE INTO emp USING s ON a = b;

--> ParseError 1:32 Expected WHEN MATCHED or WHEN NOT MATCHED, found ','
MERGE INTO emp USING s ON a = b, c WHEN MATCHED THEN DELETE;

--> ParseError 1:46 Expected AND or THEN, found 'DELETE'
MERGE INTO emp USING s ON a = b WHEN MATCHED DELETE;

--> ParseError 1:50 Expected a condition, found 'THEN'
MERGE INTO emp USING s ON a = b WHEN MATCHED AND THEN DELETE;

--> ParseError 1:51 Expected THEN, found the end
MERGE INTO emp USING s ON a = b WHEN MATCHED AND c;

--> ParseError 1:51 Expected UPDATE or DELETE, found 'INSERT'
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN INSERT *;

--> ParseError 1:55 Expected INSERT, found 'UPDATE'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED THEN UPDATE SET a = 1;

--> ParseError 1:65 Expected UPDATE or DELETE, found 'INSERT'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED BY SOURCE THEN INSERT *;

--> ParseError 1:76 Expected a column name, found '*'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *;

--> ParseError 1:53 Expected TARGET or SOURCE, found 'ME'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED BY ME THEN INSERT *;

--> ParseError 1:58 Expected SET, found 'a'
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN UPDATE a = 1;

--> ParseError 1:64 x.a is not a column of the updated table
MERGE INTO emp t USING s ON a = b WHEN MATCHED THEN UPDATE SET x.a = 1;

--> ParseError 1:66 Expected a value, found 'WHEN'
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN UPDATE SET a = WHEN NOT MATCHED THEN INSERT *;

--> ParseError 1:68 Expected WHEN or the end of the statement, found 'WHERE'
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN UPDATE SET a = 1 WHERE a = 2;

--> ParseError 1:58 Expected WHEN or the end of the statement, found 'WHERE'
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN DELETE WHERE a = 1;

--> ParseError 1:66 Expected VALUES, found '('
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED THEN INSERT (a) (1);

--> ParseError 1:62 Expected VALUES, found 'SELECT'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED THEN INSERT SELECT 1;

--> ParseError 1:70 Expected a value, found ')'
MERGE INTO emp USING s ON a = b WHEN NOT MATCHED THEN INSERT VALUES ();

--> ParseError 1:33 Only the last WHEN MATCHED clause may omit the AND condition
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN DELETE WHEN MATCHED AND c THEN UPDATE SET a = 1;

--> ParseError 2:1 Only the last WHEN NOT MATCHED clause may omit the AND condition
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN DELETE
WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *;

--> ParseError 2:1 Only the last WHEN NOT MATCHED BY SOURCE clause may omit the AND condition
MERGE INTO emp USING s ON a = b WHEN MATCHED THEN DELETE
WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE AND c THEN DELETE;

--> ParseError 1:38 Expected a write id, found 'yesterday'
MERGE INTO emp USING s VERSION AS OF 'yesterday' ON a = b WHEN MATCHED THEN DELETE;
