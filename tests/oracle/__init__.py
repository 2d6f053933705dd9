"""What acidsql answers and stores, judged by Spark itself over plain tables of the same rows."""
