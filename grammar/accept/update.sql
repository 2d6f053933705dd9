--> Update covers: update, assignment, equals, where, expression
UPDATE emp SET salary = 6000 WHERE id = 2;

--> Update covers: value, equals
UPDATE emp SET salary = DEFAULT, name == upper(name);

--> Update covers: alias, qualifier
UPDATE hr.emp AS e SET e.salary = e.salary * 1.1 WHERE e.id IN (SELECT id FROM bonus WHERE kind = 'x');

--> Update covers: qualifier
UPDATE hr.emp SET emp.a = 1, hr.emp.b = 2, spark_catalog.hr.emp.c = 3;

--> Update covers: expression
UPDATE emp SET a = CASE WHEN x AND y THEN 1 ELSE 2 END, b = (SELECT max(v) FROM t WHERE k = 1), c = filter(xs, x -> x > 1),
  d = a IS NOT DISTINCT FROM b, e = EXTRACT(day FROM ts), f = sum(z) OVER (PARTITION BY p ORDER BY q), g = xs[0],
  h = trim(BOTH ' ' FROM s) WHERE id BETWEEN 1 AND 2 AND NOT deleted;

--> Update covers: word
UPDATE set SET set = where, where = where + 1 WHERE where = 2;

--> Delete covers: delete
DELETE FROM emp;

--> Delete covers: delete, alias, where
DELETE FROM hr.emp e WHERE EXISTS (SELECT 1 FROM gone g WHERE g.id = e.id);

--> Update covers: with_statement, with_clause, update
WITH c AS (SELECT id FROM gone), d AS (SELECT 1 AS n) UPDATE emp SET a = (SELECT n FROM d) WHERE id IN (SELECT id FROM c);

--> Delete covers: with_statement, with_clause, delete
WITH c AS (SELECT id FROM gone) DELETE FROM emp e WHERE e.id IN (SELECT id FROM c);
