"""The Kafka encoder of tests/wire, with the APIs that only the differential test speaks."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))

import kafka  # noqa: E402

MORE = """
CreateTopics 19 2-4 99
  > topics:[ name:str partitions:i32 replication:i16=1 assignments:[ index:i32 nodes:[]i32 ] configs:[ name:str value:str? ] ]
    timeout_ms:i32=30000 validate_only:bool
  < throttle:i32 topics:[ name:str error:i16 message:str? ]
DescribeGroups 15 0-6 5
  > groups:[]str operations:bool@3+
  < throttle:i32@1+ groups:[ error:i16 message:str@6+?6 group:str state:str protocol_type:str protocol:str
      members:[ member:str instance:str@4+? client_id:str host:str metadata:bytes assignment:bytes ] operations:i32@3+ ]
ListGroups 16 0-5 3
  > states:[]str@4+ types:[]str@5+
  < throttle:i32@1+ error:i16 groups:[ group:str protocol_type:str state:str@4+ type:str@5+ ]
DescribeConfigs 32 1-4 4
  > resources:[ type:i8 name:str keys:[]str? ] synonyms:bool documentation:bool@3+
  < throttle:i32 results:[ error:i16 message:str? type:i8 name:str configs:[ name:str value:str? read_only:bool source:i8 sensitive:bool
      synonyms:[ name:str value:str? source:i8 ] config_type:i8@3+ documentation:str@3+? ] ]
DeleteGroups 42 0-2 2
  > groups:[]str
  < throttle:i32 results:[ group:str error:i16 ]
OffsetDelete 47 0-0 99
  > group:str topics:[ name:str partitions:[ index:i32 ] ]
  < error:i16 throttle:i32 topics:[ name:str partitions:[ index:i32 error:i16 ] ]
"""

for name, api in kafka.parse_table(MORE).items():
    kafka.API.setdefault(name, api)

API = kafka.API
encode_request, decode_response, frame = kafka.encode_request, kafka.decode_response, kafka.frame
Malformed = kafka.Malformed
