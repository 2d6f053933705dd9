--> Insert covers: insert, values, row, value, table
INSERT INTO emp VALUES (1, 'a', DEFAULT), (2, concat('b', 'c'), -1.5BD);

--> Insert covers: row
INSERT INTO emp VALUES 1, 2, (SELECT max(id) FROM emp);

--> Insert covers: insert, names, quoted_name
INSERT INTO TABLE hr.emp (id, `the name`) SELECT a, b FROM src;

--> Insert covers: insert, partition_spec, partition_value
INSERT INTO emp PARTITION (p = 1, q) SELECT * FROM src;

--> Insert covers: insert, insert_target
INSERT OVERWRITE TABLE emp PARTITION (p = 'x') IF NOT EXISTS TABLE src;

--> Insert covers: insert
INSERT INTO emp BY NAME SELECT 1 AS id, 'x' AS name;

--> Insert covers: insert
INSERT INTO emp (id) (SELECT 1);

--> Insert covers: insert
INSERT INTO spark_catalog.hr.emp FROM src SELECT *;

--> Insert covers: insert
INSERT INTO emp WITH c AS (SELECT 1) SELECT * FROM c;

--> Insert covers: with_statement, with_clause
WITH c AS (SELECT 1) INSERT INTO emp SELECT * FROM c;

--> MultiInsert covers: multi_insert, from_clause, insert_select
FROM emp e JOIN dept d ON e.dept = d.id
INSERT INTO a PARTITION (p = 1) SELECT e.id WHERE d.id > 1
INSERT OVERWRITE TABLE b (x, y) SELECT e.id, count(*) GROUP BY e.id
INSERT INTO c BY NAME SELECT (SELECT max(id) FROM emp) AS id;

--> MultiInsert covers: multi_insert
FROM (SELECT id FROM emp WHERE id > 1) s INSERT INTO a SELECT s.id;

--> MultiInsert covers: multi_insert, with_statement
WITH c AS (SELECT 1 AS id) FROM c INSERT INTO a SELECT id INSERT INTO b SELECT id + 1;

--> Insert covers: with_statement, insert
WITH c AS (SELECT 1 AS id) INSERT INTO emp WITH d AS (SELECT * FROM c) SELECT * FROM d;

--> Insert covers: word
INSERT INTO table (date, value, set, table) VALUES (1, 2, 3, 4);
