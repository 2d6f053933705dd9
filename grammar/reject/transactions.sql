--> ParseError 1:7 Expected TRANSACTION, found 'BATCH'
START BATCH;

--> ParseError 1:23 Expected ONLY or WRITE, found the end
START TRANSACTION READ;

--> ParseError 1:30 Expected READ or ISOLATION LEVEL
START TRANSACTION READ ONLY ,;

--> ParseError 1:30 READ ONLY or READ WRITE is given twice
START TRANSACTION READ ONLY, READ WRITE;

--> ParseError 1:35 Expected SNAPSHOT, found 'SERIALIZABLE'
START TRANSACTION ISOLATION LEVEL SERIALIZABLE;

--> ParseError 1:8 Expected the end of the statement, found 'AND'
COMMIT AND CHAIN;

--> ParseError 1:10 Expected the end of the statement, found 'TO'
ROLLBACK TO here;

--> ParseError 1:16 Expected TRUE or FALSE, found 'maybe'
SET AUTOCOMMIT maybe;
