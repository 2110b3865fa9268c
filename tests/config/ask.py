"""Inside the server's network namespace: reads requests as JSON lines from stdin, one connection each, and prints the answers. For test_log.py."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MUSTER_TOP"], "tests", "wire"))
from kafka import Connection  # noqa: E402

for line in sys.stdin:
    name, version, values = json.loads(line)
    with Connection(("10.77.0.2", 19092), timeout=10) as connection:
        print(json.dumps(connection.request(name, version, **values), default=repr), flush=True)
