--> Query covers: query_statement, query, statement
SELECT id, count(*) FROM emp WHERE salary > 5000 GROUP BY id ORDER BY 1 LIMIT 10;

--> Query covers: query
FROM hr.emp SELECT id WHERE p = 1;

--> Query covers: query
TABLE emp;

--> Query covers: query
VALUES (1, 'a'), (2, 'b');

--> Query covers: query
(SELECT 1) UNION ALL (SELECT 2);

--> Query covers: query
SELECT a:b::int, nvl(a, b), 1L, a <=> b, r'\d', timestamp '2020-01-01', x -> x + 1, '$$ ; ${x}' FROM emp;

--> Query covers: query
FROM emp |> WHERE id = 1 |> SELECT name;

--> Query covers: query
MAP a, b USING 'cat' AS (a, b) FROM emp;

--> Query covers: with_statement, with_clause, cte
WITH c AS (SELECT 1 AS a), d (x, y) AS (SELECT 2, 3) SELECT * FROM c, d;

--> Query covers: with_clause, cte
WITH RECURSIVE r (n) MAX RECURSION LEVEL 20 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r;

--> Query covers: query, table_changes
SELECT c.id, _change_type FROM table_changes('hr.emp', 5, :last, 'id') AS c WHERE _commit_version > 6;

--> Query covers: query, table_changes
SELECT * FROM TABLE_CHANGES('emp', 5);

--> Query covers: query, time_travel
SELECT * FROM emp VERSION AS OF 12 e JOIN dept FOR SYSTEM_VERSION AS OF :n ON e.dept = dept.id;

--> Query covers: gap
/* first */ SELECT /*+ BROADCAST(d) */ * -- a comment with a ; and a '
FROM emp /* one /* inside */ another */ d
;
