"""A small Kafka codec and client of our own, for talking to a server byte by byte. Standard library only.

The layouts below are written independently of coordinator/wire/messages.def, so that a mistake there is not mirrored here.

Layout language, one field a word: name:type, then in any order
    @a+ or @a-b   versions that carry it (all, if absent)
    ?  or ?n      may be null (from version n)
    #t            tagged field t
    =v            value when the caller gives none
Types: bool i8 i16 i32 i64 uuid str bytes (i32 or compact length) []i32 []i64 []str, and name:[ fields ] for an array of structs,
name:{ fields } for one struct. Everything decoded is checked: bounds, null where it is not allowed, bytes left over.
"""

import socket
import struct
import time


class Malformed(Exception):
    """The bytes received do not follow the protocol."""


LAST = 99

API_TABLE = """
Produce 0 0-13 9
  > transactional_id:str@3+?3=None acks:i16=-1 timeout_ms:i32=1000
    topics:[ name:str@0-12 topic_id:uuid@13+ partitions:[ index:i32 records:bytes? ] ]
  < topics:[ name:str@0-12 topic_id:uuid@13+ partitions:[ index:i32 error:i16 base_offset:i64 log_append_time:i64@2+
      log_start_offset:i64@5+ record_errors:[ index:i32 message:str? ]@8+ error_message:str@8+?8
      current_leader:{ id:i32 epoch:i32 }@10+#0 ] ]
    throttle:i32@1+ endpoints:[ id:i32 host:str port:i32 rack:str? ]@10+#0
Fetch 1 0-18 12
  > cluster_id:str@12+?12#0 replica_id:i32@0-14=-1 replica_state:{ id:i32=-1 epoch:i64=-1 }@15+#1
    max_wait_ms:i32=500 min_bytes:i32=1 max_bytes:i32@3+=1000000 isolation:i8@4+
    session_id:i32@7+ session_epoch:i32@7+=-1
    topics:[ name:str@0-12 topic_id:uuid@13+ partitions:[ index:i32 leader_epoch:i32@9+=-1 offset:i64 last_fetched_epoch:i32@12+=-1
      log_start_offset:i64@5+=-1 max_bytes:i32=1000000 directory_id:uuid@17+#0 high_watermark:i64@18+#1 ] ]
    forgotten:[ name:str@0-12 topic_id:uuid@13+ partitions:[]i32 ]@7+ rack:str@11+
  < throttle:i32@1+ error:i16@7+ session_id:i32@7+
    topics:[ name:str@0-12 topic_id:uuid@13+ partitions:[ index:i32 error:i16 high_watermark:i64 last_stable_offset:i64@4+
      log_start_offset:i64@5+ diverging_epoch:{ epoch:i32 end_offset:i64 }@12+#0 current_leader:{ id:i32 epoch:i32 }@12+#1
      snapshot:{ end_offset:i64 epoch:i32 }@12+#2 aborted:[ producer_id:i64 first_offset:i64 ]@4+?4
      preferred_read_replica:i32@11+ records:bytes? ] ]
    endpoints:[ id:i32 host:str port:i32 rack:str? ]@16+#0
ListOffsets 2 0-11 6
  > replica_id:i32=-1 isolation:i8@2+ topics:[ name:str partitions:[ index:i32 leader_epoch:i32@4+=-1 timestamp:i64=-1 max_num_offsets:i32@0-0=1 ] ]
    timeout_ms:i32@10+=1000
  < throttle:i32@2+ topics:[ name:str partitions:[ index:i32 error:i16 offsets:[]i64@0-0 timestamp:i64@1+ offset:i64@1+ leader_epoch:i32@4+ ] ]
Metadata 3 0-13 9
  > topics:[ topic_id:uuid@10+ name:str?10 ]?1 allow_auto_create:bool@4+ cluster_operations:bool@8-10 topic_operations:bool@8+
  < throttle:i32@3+ nodes:[ id:i32 host:str port:i32 rack:str@1+? ] cluster_id:str@2+? controller_id:i32@1+
    topics:[ error:i16 name:str?12 topic_id:uuid@10+ internal:bool@1+ partitions:[ error:i16 index:i32 leader:i32 leader_epoch:i32@7+
      replicas:[]i32 isr:[]i32 offline:[]i32@5+ ] operations:i32@8+ ]
    cluster_operations:i32@8-10 error:i16@13+
OffsetCommit 8 0-10 8
  > group:str generation:i32@1+=-1 member:str@1+ instance:str@7+? retention_ms:i64@2-4=-1
    topics:[ name:str@0-9 topic_id:uuid@10+ partitions:[ index:i32 offset:i64 leader_epoch:i32@6+=-1 timestamp:i64@1-1=-1 metadata:str?= ] ]
  < throttle:i32@3+ topics:[ name:str@0-9 topic_id:uuid@10+ partitions:[ index:i32 error:i16 ] ]
OffsetFetch 9 0-10 6
  > group:str@0-7 topics:[ name:str partitions:[]i32 ]@0-7?2
    groups:[ group:str member:str@9+?=None epoch:i32@9+=-1 topics:[ name:str@8-9 topic_id:uuid@10+ partitions:[]i32 ]? ]@8+ require_stable:bool@7+
  < throttle:i32@3+ topics:[ name:str partitions:[ index:i32 offset:i64 leader_epoch:i32@5+ metadata:str? error:i16 ] ]@0-7 error:i16@2-7
    groups:[ group:str topics:[ name:str@8-9 topic_id:uuid@10+ partitions:[ index:i32 offset:i64 leader_epoch:i32 metadata:str? error:i16 ] ] error:i16 ]@8+
FindCoordinator 10 0-6 3
  > key:str@0-3 key_type:i8@1+ keys:[]str@4+
  < throttle:i32@1+ error:i16@0-3 message:str@1-3? id:i32@0-3 host:str@0-3 port:i32@0-3
    coordinators:[ key:str id:i32 host:str port:i32 error:i16 message:str? ]@4+
JoinGroup 11 0-9 6
  > group:str session_ms:i32=10000 rebalance_ms:i32@1+=60000 member:str instance:str@5+? protocol_type:str=consumer
    protocols:[ name:str metadata:bytes ] reason:str@8+?=None
  < throttle:i32@2+ error:i16 generation:i32 protocol_type:str@7+? protocol:str?7 leader:str skip_assignment:bool@9+ member:str
    members:[ member:str instance:str@5+? metadata:bytes ]
Heartbeat 12 0-4 4
  > group:str generation:i32 member:str instance:str@3+?
  < throttle:i32@1+ error:i16
LeaveGroup 13 0-5 4
  > group:str member:str@0-2 members:[ member:str instance:str? reason:str@5+?=None ]@3+
  < throttle:i32@1+ error:i16 members:[ member:str instance:str? error:i16 ]@3+
SyncGroup 14 0-5 4
  > group:str generation:i32 member:str instance:str@3+? protocol_type:str@5+?=None protocol:str@5+?=None
    assignments:[ member:str assignment:bytes ]
  < throttle:i32@1+ error:i16 protocol_type:str@5+? protocol:str@5+? assignment:bytes
DescribeGroups 15 0-6 5
  > groups:[]str operations:bool@3+
  < throttle:i32@1+ groups:[ error:i16 message:str@6+? group:str state:str protocol_type:str protocol:str
      members:[ member:str instance:str@4+? client_id:str host:str metadata:bytes assignment:bytes ] operations:i32@3+ ]
ListGroups 16 0-5 3
  > states:[]str@4+ types:[]str@5+
  < throttle:i32@1+ error:i16 groups:[ group:str protocol_type:str state:str@4+ type:str@5+ ]
ApiVersions 18 0-4 3
  > software:str@3+=wire-test software_version:str@3+=1
  < error:i16 apis:[ key:i16 min:i16 max:i16 ] throttle:i32@1+ supported:[ name:str min:i16 max:i16 ]@3+#0
    finalized_epoch:i64@3+#1 finalized:[ name:str max:i16 min:i16 ]@3+#2 zk_ready:bool@3+#3
OffsetForLeaderEpoch 23 0-4 4
  > replica_id:i32@3+=-2 topics:[ name:str partitions:[ index:i32 current_epoch:i32@2+=-1 epoch:i32 ] ]
  < throttle:i32@2+ topics:[ name:str partitions:[ error:i16 index:i32 epoch:i32@1+ end_offset:i64 ] ]
DeleteGroups 42 0-2 2
  > groups:[]str
  < throttle:i32 results:[ group:str error:i16 ]
OffsetDelete 47 0-0 99
  > group:str topics:[ name:str partitions:[ index:i32 ] ]
  < error:i16 throttle:i32 topics:[ name:str partitions:[ index:i32 error:i16 ] ]
DescribeCluster 60 0-2 0
  > operations:bool endpoint_type:i8@1+=1 fenced:bool@2+
  < throttle:i32 error:i16 message:str? endpoint_type:i8@1+ cluster_id:str controller_id:i32
    nodes:[ id:i32 host:str port:i32 rack:str? fenced:bool@2+ ] operations:i32
"""


class Field:
    """One field of a layout."""

    def __init__(self, name, kind, fields):
        self.name, self.kind, self.fields = name, kind, fields
        self.first, self.last = 0, LAST
        self.null_from = None
        self.tag = None
        self.default = {"str": "", "bytes": b"", "uuid": bytes(16), "bool": False, "{": {}}.get(kind, 0)
        if kind.startswith("["):
            self.default = []

    def attributes(self, text):
        while text:
            mark, text = text[0], text[1:]
            end = min([i for i in (text.find(c) for c in "@?#=") if i >= 0] or [len(text)]) if mark != "=" else len(text)
            value, text = text[:end], text[end:]
            if mark == "@":
                first, _, last = value.replace("+", "-%d" % LAST).partition("-")
                self.first, self.last = int(first), int(last)
            elif mark == "?":
                self.null_from = int(value or 0)
            elif mark == "#":
                self.tag = int(value)
            elif mark == "=":
                self.default = None if value == "None" else value if self.kind == "str" else int(value)
        if self.null_from is not None and self.kind == "str" and self.name == "instance":
            self.default = None


def parse_fields(words):
    """Fields up to the closing bracket or the end; consumes `words`."""
    fields = []
    while words:
        word = words.pop(0)
        if word[0] in "]}":
            words.insert(0, word)
            return fields
        name, _, kind = word.partition(":")
        if kind in "[{":
            inner = parse_fields(words)
            field = Field(name, kind, inner)
            field.attributes(words.pop(0)[1:])
        else:
            cut = min([i for i in (kind.find(c) for c in "@?#=") if i >= 0] or [len(kind)])
            field = Field(name, kind[:cut], None)
            field.attributes(kind[cut:])
        fields.append(field)
    return fields


class Api:
    """One Kafka API: key, versions and both layouts."""

    def __init__(self, name, key, versions, flexible, request, response):
        self.name, self.key, self.flexible = name, int(key), int(flexible)
        self.lowest, self.highest = (int(v) for v in versions.split("-"))
        self.request, self.response = request, response


def parse_table(text):
    apis = {}
    words = text.split()
    while words:
        name, key, versions, flexible, mark = (words.pop(0) for _ in range(5))
        assert mark == ">"
        split = words.index("<")
        request, words = words[:split], words[split + 1:]
        end = next((i for i, w in enumerate(words) if ":" not in w and w[0] not in "]}"), len(words))
        response, words = words[:end], words[end:]
        apis[name] = Api(name, key, versions, flexible, parse_fields(request), parse_fields(response))
    return apis


API = parse_table(API_TABLE)
API_OF_KEY = {api.key: api for api in API.values()}

# ---- encoding ----

INTEGER = {"i8": ">b", "i16": ">h", "i32": ">i", "i64": ">q"}


def uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length(n, kind, flexible):
    """A length or count; n None is null."""
    if flexible:
        return uvarint(0 if n is None else n + 1)
    return struct.pack(">h" if kind == "str" else ">i", -1 if n is None else n)


def encode_value(field, value, version, flexible):
    kind = field.kind
    if kind in INTEGER:
        return struct.pack(INTEGER[kind], value)
    if kind == "bool":
        return bytes([bool(value)])
    if kind == "uuid":
        return value
    if kind in ("str", "bytes"):
        if value is None:
            return length(None, kind, flexible)
        raw = value.encode() if isinstance(value, str) else value
        return length(len(raw), kind, flexible) + raw
    if kind == "{":
        return encode_fields(field.fields, value, version, flexible)
    if value is None:
        return length(None, kind, flexible)
    out = length(len(value), kind, flexible)
    for item in value:
        if kind == "[":
            out += encode_fields(field.fields, item, version, flexible)
        else:
            out += encode_value(Field("", kind[2:], None), item, version, flexible)
    return out


def encode_fields(fields, values, version, flexible):
    unknown = set(values) - {f.name for f in fields} - {"_tags"}
    if unknown:
        raise KeyError("no such field: %s" % ", ".join(sorted(unknown)))
    out, tagged = b"", dict(values.get("_tags", {}))
    for f in fields:
        if not f.first <= version <= f.last:
            continue
        value = values.get(f.name, f.default)
        if f.tag is None:
            out += encode_value(f, value, version, flexible)
        elif f.name in values:
            tagged[f.tag] = encode_value(f, value, version, flexible)
    if flexible:
        out += uvarint(len(tagged))
        for tag in sorted(tagged):
            out += uvarint(tag) + uvarint(len(tagged[tag])) + tagged[tag]
    return out


def header(key, version, correlation, client_id, flexible):
    raw = b"" if client_id is None else client_id.encode()
    out = struct.pack(">hhih", key, version, correlation, -1 if client_id is None else len(raw)) + raw
    return out + (b"\0" if flexible else b"")


def encode_request(name, version, correlation, values, client_id="wire-test"):
    """A request without its length field."""
    api = API[name]
    flexible = version >= api.flexible
    return header(api.key, version, correlation, client_id, flexible) + encode_fields(api.request, values, version, flexible)


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


# ---- decoding ----

class Reader:
    """Bounded reader; anything that does not fit raises Malformed."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise Malformed("%d bytes wanted at %d of %d" % (n, self.at, len(self.data)))
        self.at += n
        return self.data[self.at - n:self.at]

    def integer(self, kind):
        raw = self.take(struct.calcsize(INTEGER[kind]))
        return struct.unpack(INTEGER[kind], raw)[0]

    def uvarint(self):
        value = shift = 0
        while True:
            b = self.take(1)[0]
            value |= (b & 0x7F) << shift
            if b < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise Malformed("varint too long")

    def length(self, kind, flexible):
        if flexible:
            n = self.uvarint() - 1
        else:
            n = self.integer("i16" if kind == "str" else "i32")
        if n < -1:
            raise Malformed("negative length")
        return n

    def end(self):
        if self.at != len(self.data):
            raise Malformed("%d bytes left over" % (len(self.data) - self.at))


def decode_value(field, r, version, flexible):
    kind = field.kind
    if kind in INTEGER:
        return r.integer(kind)
    if kind == "bool":
        value = r.take(1)[0]
        if value > 1:
            raise Malformed("boolean %d" % value)
        return bool(value)
    if kind == "uuid":
        return r.take(16)
    if kind == "{":
        return decode_fields(field.fields, r, version, flexible)
    n = r.length(kind, flexible)
    if n < 0:
        if field.null_from is None or version < field.null_from:
            raise Malformed("%s is null in version %d" % (field.name, version))
        return None
    if kind == "str":
        return r.take(n).decode()
    if kind == "bytes":
        return r.take(n)
    if n > len(r.data) - r.at:
        raise Malformed("%s: count %d exceeds the bytes" % (field.name, n))
    if kind == "[":
        return [decode_fields(field.fields, r, version, flexible) for _ in range(n)]
    return [decode_value(Field("", kind[2:], None), r, version, flexible) for _ in range(n)]


def decode_fields(fields, r, version, flexible):
    values = {}
    by_tag = {f.tag: f for f in fields if f.tag is not None and f.first <= version <= f.last}
    for f in fields:
        if f.tag is None and f.first <= version <= f.last:
            values[f.name] = decode_value(f, r, version, flexible)
    if flexible:
        last = -1
        for _ in range(r.uvarint()):
            tag = r.uvarint()
            if tag <= last:
                raise Malformed("tags out of order")
            last = tag
            part = Reader(r.take(r.uvarint()))
            if tag in by_tag:
                values[by_tag[tag].name] = decode_value(by_tag[tag], part, version, flexible)
                part.end()
    return values


def decode_response(name, version, payload):
    """(correlation id, fields) of a response without its length field."""
    api = API[name]
    r = Reader(payload)
    correlation = r.integer("i32")
    flexible = version >= api.flexible
    if flexible and api.key != 18 and r.uvarint() != 0:
        raise Malformed("tags in the response header")
    values = decode_fields(api.response, r, version, flexible)
    r.end()
    return correlation, values


# ---- client ----

class Closed(Exception):
    """The server closed the connection; `reset` tells RST from FIN."""

    def __init__(self, reset):
        super().__init__("reset" if reset else "closed")
        self.reset = reset


class Connection:
    """One connection. Requests may be pipelined: `send` several, then `receive` as many; answers must come in that order."""

    def __init__(self, address, timeout=15.0, client_id="wire-test"):
        self.sock = socket.create_connection(address, timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.correlation = 100
        self.pending = []
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Ends the connection with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def half_close(self):
        """Sends FIN, goes on reading."""
        self.sock.shutdown(socket.SHUT_WR)

    def encode(self, name, version, values):
        self.correlation += 1
        self.pending.append((name, version, self.correlation))
        return frame(encode_request(name, version, self.correlation, values, self.client_id))

    def send(self, name, version, **values):
        self.send_raw(self.encode(name, version, values))

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except (ConnectionError, BrokenPipeError) as e:
            raise Closed(True) from e

    def read(self, n, deadline):
        while len(self.buffer) < n:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer")
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(65536)
            except ConnectionError as e:
                raise Closed(True) from e
            if not data:
                raise Closed(False)
            self.buffer += data
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def receive_frame(self, timeout=15.0):
        deadline = time.monotonic() + timeout
        if len(self.buffer) < 4:
            self.buffer = self.read(4, deadline) + self.buffer
        n = struct.unpack(">i", self.buffer[:4])[0]
        if not 4 <= n <= 100 << 20:
            raise Malformed("response length %d" % n)
        return self.read(4 + n, deadline)[4:]

    def receive(self, timeout=15.0):
        """The next answer, decoded; its correlation id must be that of the oldest unanswered request."""
        payload = self.receive_frame(timeout)
        name, version, correlation = self.pending.pop(0)
        got, values = decode_response(name, version, payload)
        if got != correlation:
            raise Malformed("answer to %d where %d is due" % (got, correlation))
        return values

    def request(self, name, version, timeout=15.0, **values):
        self.send(name, version, **values)
        return self.receive(timeout)

    def answered(self, timeout):
        """True when a whole answer has come within the timeout; it stays to be received."""
        deadline = time.monotonic() + timeout
        try:
            if len(self.buffer) < 4:
                self.buffer = self.read(4, deadline) + self.buffer
            n = 4 + struct.unpack(">i", self.buffer[:4])[0]
            self.buffer = self.read(n, deadline) + self.buffer
        except TimeoutError:
            return False
        return True

    def closed(self, timeout=10.0):
        """Waits for the server to close; returns "reset", "closed", or None when it stays open. Data that comes first is dropped."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                self.read(len(self.buffer) + 1, deadline)
        except Closed as e:
            return "reset" if e.reset else "closed"
        except TimeoutError:
            return None
