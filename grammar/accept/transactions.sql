--> StartTransaction covers: start_transaction
START TRANSACTION;

--> StartTransaction covers: start_transaction, transaction_mode
START TRANSACTION READ ONLY;

--> StartTransaction covers: start_transaction, transaction_mode
START TRANSACTION ISOLATION LEVEL SNAPSHOT, READ WRITE;

--> Commit covers: commit
COMMIT;

--> Commit covers: commit
COMMIT WORK;

--> Rollback covers: rollback
ROLLBACK;

--> Rollback covers: rollback
ROLLBACK WORK;

--> SetAutocommit covers: set_autocommit
SET AUTOCOMMIT TRUE;

--> SetAutocommit covers: set_autocommit
SET AUTOCOMMIT FALSE;
