--> SetProperties covers: set_properties, alter_table, properties, property, property_key
ALTER TABLE hr.emp SET TBLPROPERTIES ('NO_AUTO_COMPACTION' = 'true', a.b.c = 5, d true);

--> UnsetProperties covers: unset_properties, property_key
ALTER TABLE emp UNSET TBLPROPERTIES ('a');

--> UnsetProperties covers: unset_properties
alter table emp unset tblproperties if exists ('a', b.c);

--> AddColumns covers: add_columns, new_columns, column
ALTER TABLE emp ADD COLUMNS (a int COMMENT 'the new one', `b c` array<struct<x: int, y: decimal(10, 2)>>) CASCADE;

--> AddColumns covers: add_columns
ALTER TABLE emp ADD COLUMNS (a char(3) NOT NULL, b int DEFAULT 1 + 2) RESTRICT;

--> AddColumns covers: add_columns, new_columns
ALTER TABLE emp ADD COLUMN a int, b timestamp with local time zone;

--> AddColumns covers: add_columns
ALTER TABLE emp ADD COLUMN column int;

--> ReplaceColumns covers: replace_columns, new_columns, cascade
ALTER TABLE emp REPLACE COLUMNS (id bigint COMMENT 'the key', name varchar(20)) CASCADE;

--> ChangeColumn covers: change_column, column, column_place
ALTER TABLE emp CHANGE COLUMN name full_name string COMMENT 'all of it' AFTER id CASCADE;

--> ChangeColumn covers: change_column, column_place
ALTER TABLE emp CHANGE name name varchar(30) FIRST;

--> ChangeColumn covers: change_column
ALTER TABLE emp CHANGE column salary bigint;

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp ALTER COLUMN salary TYPE decimal(10, 2);

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp ALTER COLUMN salary COMMENT 'a year';

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp ALTER salary SET NOT NULL;

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp CHANGE COLUMN salary DROP NOT NULL;

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp ALTER COLUMN salary SET DEFAULT 100 + 1;

--> ChangeColumn covers: alter_column, column_action
ALTER TABLE emp ALTER COLUMN salary DROP DEFAULT;

--> ChangeColumn covers: alter_column, column_action, column_place
ALTER TABLE emp ALTER COLUMN salary AFTER `the name`;

--> ChangeColumn covers: rename_column
ALTER TABLE emp RENAME COLUMN name TO `full name`;

--> DropColumns covers: drop_columns
ALTER TABLE emp DROP COLUMN salary;

--> DropColumns covers: drop_columns
ALTER TABLE emp DROP COLUMNS IF EXISTS (salary, name);

--> AddConstraint covers: add_constraint, table_constraint, check, traits
ALTER TABLE hr.emp ADD CONSTRAINT positive CHECK (salary > 0 AND id IN (1, 2)) ENABLE NOVALIDATE RELY;

--> AddConstraint covers: add_constraint
ALTER TABLE emp ADD CONSTRAINT `the key` PRIMARY KEY (id, name) DISABLE NOVALIDATE RELY;

--> AddConstraint covers: add_constraint, references
ALTER TABLE emp ADD CONSTRAINT dept FOREIGN KEY (dept) REFERENCES hr.dept (id) DISABLE NOVALIDATE;

--> AddConstraint covers: add_constraint
ALTER TABLE emp ADD UNIQUE (name) NOT ENFORCED;

--> DropConstraint covers: drop_constraint
ALTER TABLE emp DROP CONSTRAINT positive;

--> DropConstraint covers: drop_constraint
ALTER TABLE emp DROP CONSTRAINT IF EXISTS `the key` CASCADE;

--> ChangeColumn covers: change_column, column_constraint
ALTER TABLE emp CHANGE COLUMN salary salary int CONSTRAINT paid NOT NULL ENABLE NOVALIDATE COMMENT 'a month';

--> ChangeColumn covers: change_column, column_constraint
ALTER TABLE emp CHANGE salary pay int CONSTRAINT positive CHECK (pay > 0) ENABLE CASCADE;

--> AddColumns covers: add_columns
ALTER TABLE emp PARTITION (p = 1, q = 'a') ADD COLUMNS (a int);

--> ChangeColumn covers: change_column
ALTER TABLE emp PARTITION (p = 1) CHANGE COLUMN a b int RESTRICT;

--> RenameTable covers: rename_table
ALTER TABLE hr.emp RENAME TO hr.people;

--> SetLocation covers: set_location
ALTER TABLE emp SET LOCATION '/data/emp';

--> SetLocation covers: set_location
ALTER TABLE emp PARTITION (p = 1) SET LOCATION '/data/p';

--> RenamePartition covers: rename_partition, partition_values
ALTER TABLE emp PARTITION (p = 1, q = 'a') RENAME TO PARTITION (p = 2, q = 'b');

--> AddPartitions covers: add_partitions, new_partition, partition_values, key_value
ALTER TABLE emp ADD PARTITION (p = 1, q = 'a');

--> AddPartitions covers: add_partitions, new_partition, location
ALTER TABLE emp ADD IF NOT EXISTS PARTITION (p = 1) LOCATION '/data/one' PARTITION (p = date '2024-01-01')
  PARTITION (p = NULL);

--> DropPartitions covers: drop_partitions, partition_values, key_value
ALTER TABLE emp DROP PARTITION (p = 1);

--> DropPartitions covers: drop_partitions
ALTER TABLE emp DROP IF EXISTS PARTITION (p = 1 + 1, q = 'a'), PARTITION (p == 2) PURGE;

--> ExchangePartition covers: exchange_partition, partition_spec, alter_table
ALTER TABLE emp EXCHANGE PARTITION (p = 1) WITH TABLE hr.other;
