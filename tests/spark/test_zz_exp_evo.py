import datetime as dt
from decimal import Decimal
import pytest
from tests.spark.hive_files import *
from tests.spark.hive_tables import register
VALUES={
 "boolean":[True,False,None],
 "tinyint":[1,-128,127],"smallint":[1,300,-32768],"int":[1,70000,-2**31],"bigint":[1,2**40,-2**63],
 "float":[1.5,3e9,float("nan")],"double":[1.5,1e300,float("inf"),-2.7,0.1],
 "decimal(10,2)":[Decimal("1.25"),Decimal("99999999.99"),Decimal("-0.5")],
 "string":["12","abc","1.5","true","2024-02-29","2024-02-29 12:13:14.5","", " 7 ","99999999999999999999"],
 "varchar(10)":["12","abcdefghij"],"char(10)":["12","abcdefghij"],
 "date":[dt.date(2024,2,29),dt.date(1500,1,1)],
 "timestamp":[dt.datetime(2024,2,29,12,13,14,500000)],
 "binary":[b"abc",b"\xff"],
}
TARGETS=["boolean","tinyint","smallint","int","bigint","float","double","decimal(10,2)","decimal(4,1)","string","varchar(3)","char(3)","char(12)","date","timestamp","binary"]
def test_x(acid,tmp_path):
    n=0
    for plain in (False,True):
      for src,vals in VALUES.items():
        for tgt in TARGETS:
            if src==tgt: continue
            n+=1
            root=tmp_path/f"t{n}"
            if plain: write_orc(root/"000000_0",f"struct<k:int,v:{src}>",[(i,v) for i,v in enumerate(vals)])
            else: write_events(root/"delta_1_1_0/bucket_00000",f"k:int,v:{src}",inserts(1,[(i,v) for i,v in enumerate(vals)]))
            register(acid,root,[("k","int"),("v",tgt)],name=f"t{n}")
            try:
                r=[x[0] for x in acid.sql(f"SELECT v FROM t{n} ORDER BY k").collect()]
            except Exception as e:
                r="ERR "+str(e)[:150].replace("\n"," ")
            print("plain" if plain else "event",src,"->",tgt,":",vals if not plain else "",r,flush=True)
