--> CreateDatabase covers: create_database, database_word, database, string, string_part
CREATE DATABASE IF NOT EXISTS hr COMMENT 'it''s' "ours" r'\' LOCATION '/data/hr' WITH DBPROPERTIES ('a' = 'b');

--> CreateDatabase covers: database, properties, number
CREATE SCHEMA spark_catalog.hr WITH PROPERTIES (a.b 1.5);

--> DropDatabase covers: drop_database
DROP DATABASE IF EXISTS hr CASCADE;

--> DropDatabase covers: drop_database
DROP SCHEMA hr RESTRICT;
