--> Merge covers: merge, merge_source, merge_clause, when_matched, assignment, target_column
MERGE INTO emp AS t USING changes AS s ON t.id = s.id
WHEN MATCHED AND s.gone THEN DELETE
WHEN MATCHED THEN UPDATE SET salary = s.salary, t.name = DEFAULT
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.salary);

--> Merge covers: merge, merge_source, when_matched, when_not_matched
MERGE WITH SCHEMA EVOLUTION INTO hr.emp USING hr.changes ON (hr.emp.id = changes.id)
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT *;

--> Merge covers: merge, merge_source, when_not_matched, when_gone
MERGE INTO emp t USING (SELECT id, max(v) AS v FROM changes GROUP BY id) s ON t.id <=> s.id
WHEN NOT MATCHED AND s.v > 0 THEN INSERT (id, t.salary) VALUES (s.id, DEFAULT)
WHEN NOT MATCHED AND s.v = 0 THEN INSERT (id) VALUES (s.id)
WHEN NOT MATCHED BY SOURCE AND t.salary < 0 THEN UPDATE SET salary = CASE WHEN t.id > 1 THEN 0 ELSE 1 END
WHEN NOT MATCHED BY SOURCE THEN DELETE;

--> Merge covers: merge_source, values
MERGE INTO emp USING (VALUES (1, 'a'), (2, 'b')) AS s (id, name) ON emp.id = s.id WHEN MATCHED THEN DELETE;

--> Merge covers: merge_source, values
MERGE INTO emp USING VALUES (1, 'a'), (2, 'b') s (id, name) ON emp.id = s.id WHEN MATCHED THEN DELETE;

--> Merge covers: merge, with_statement, with_clause
WITH c AS (SELECT 1 AS id) MERGE INTO emp USING c ON emp.id = c.id WHEN MATCHED THEN DELETE;

--> Merge covers: when_matched
MERGE INTO emp t USING s ON CASE WHEN t.matched THEN t.id WHEN matched THEN 2 END = s.id AND t.when = s.when
WHEN MATCHED AND CASE s.then WHEN 1 THEN true END THEN UPDATE SET when = s.when WHEN NOT MATCHED THEN INSERT *;

--> Explain covers: explain, merge
EXPLAIN FORMATTED MERGE INTO emp t USING s ON t.id = s.id WHEN MATCHED THEN DELETE;

--> Merge covers: merge, merge_source, time_travel
MERGE INTO emp AS t USING emp VERSION AS OF 12 AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;

--> Merge covers: merge_source, time_travel
MERGE INTO emp USING hr.changes FOR SYSTEM_VERSION AS OF :n c ON emp.id = c.id WHEN NOT MATCHED THEN INSERT *;

--> Merge covers: merge_source
MERGE INTO emp t USING changes VERSION ON t.id = version.id WHEN MATCHED THEN DELETE;
