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

--> AddPartitions covers: add_partitions, new_partition, partition_values, key_value
ALTER TABLE emp ADD PARTITION (p = 1, q = 'a');

--> AddPartitions covers: add_partitions, new_partition, location
ALTER TABLE emp ADD IF NOT EXISTS PARTITION (p = 1) LOCATION '/data/one' PARTITION (p = date '2024-01-01')
  PARTITION (p = NULL);

--> DropPartitions covers: drop_partitions, partition_values, key_value
ALTER TABLE emp DROP PARTITION (p = 1);

--> DropPartitions covers: drop_partitions
ALTER TABLE emp DROP IF EXISTS PARTITION (p = 1 + 1, q = 'a'), PARTITION (p == 2) PURGE;
