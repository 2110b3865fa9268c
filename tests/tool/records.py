"""Writes what the tools read, from the formats alone: records of __consumer_offsets, Kafka's record batches, Muster's log folder."""
import os
import struct

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)

ALIGN = 4096
LOG_ID = bytes(range(16))


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ TABLE[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- records

def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">h", len(raw)) + raw


def nullable(text):
    return struct.pack(">h", -1) if text is None else string(text)


def data(raw):
    return struct.pack(">i", len(raw)) + raw


def offset_key(group, topic, partition):
    return struct.pack(">h", 1) + string(group) + string(topic) + struct.pack(">i", partition)


def offset_value(offset, metadata="", commit_ms=1000, epoch=-1):
    return struct.pack(">hqi", 3, offset, epoch) + string(metadata) + struct.pack(">q", commit_ms)


def group_key(group):
    return struct.pack(">h", 2) + string(group)


def subscription(*topics):
    return struct.pack(">hi", 0, len(topics)) + b"".join(map(string, topics)) + struct.pack(">i", -1)


def assignment(topic, *partitions):
    return struct.pack(">hi", 0, 1) + string(topic) + struct.pack(">i", len(partitions)) + b"".join(struct.pack(">i", p) for p in partitions) \
        + struct.pack(">i", -1)


def group_value(generation, members=(), version=3, protocol_type="consumer", protocol="range", leader=None):
    """members: (id, instance, subscription, assignment)."""
    out = struct.pack(">h", version) + string(protocol_type) + struct.pack(">i", generation) + nullable(protocol) + nullable(leader)
    if version >= 2:
        out += struct.pack(">q", 1234)
    out += struct.pack(">i", len(members))
    for member, instance, sub, assigned in members:
        out += string(member) + (nullable(instance) if version >= 3 else b"") + string("client") + string("/10.0.0.1")
        out += (struct.pack(">i", 60000) if version >= 1 else b"") + struct.pack(">i", 10000) + data(sub) + data(assigned)
    return out


def member_key(kind, group, member):
    return struct.pack(">h", kind) + string(group) + string(member)


# ---- groups in parts: Muster's own form, in Kafka's flexible encoding

def uvarint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def compact(raw):
    raw = raw.encode() if isinstance(raw, str) else raw
    return b"\0" if raw is None else uvarint(len(raw) + 1) + raw


PARTS = 0x4D01


def parts_header(generation, slot, edition, members, protocol="range", leader=None):
    tag = struct.pack(">BqI", slot, edition, members)
    return struct.pack(">h", 4) + compact("consumer") + struct.pack(">i", generation) + compact(protocol) + compact(leader) + struct.pack(">q", 1234) \
        + uvarint(1) + uvarint(1) + uvarint(PARTS) + uvarint(len(tag)) + tag


def part_key(group, slot, member):
    return struct.pack(">h", PARTS) + string(group) + bytes([slot]) + string(member)


def part_value(edition, generation, instance, sub, assigned):
    return struct.pack(">hqi", 0, edition, generation) + compact(instance) + compact("client") + compact("/10.0.0.1") + struct.pack(">ii", 60000, 10000) \
        + compact(sub) + compact(assigned) + b"\0"


def group_in_parts(group, generation, edition, members, slot=0):
    """Entries of a batch: the parts, then the header that makes them count."""
    return [(part_key(group, slot, member), part_value(edition, generation, instance, sub, assigned)) for member, instance, sub, assigned in members] \
        + [(group_key(group), parts_header(generation, slot, edition, len(members), leader=members[0][0]))]


# ---- batches

def varint(v):
    u, out = (v << 1 ^ v >> 63) & 0xFFFFFFFFFFFFFFFF, b""
    while u >= 0x80:
        out += bytes([u & 0x7F | 0x80])
        u >>= 7
    return out + bytes([u])


def varbytes(raw):
    return varint(-1) if raw is None else varint(len(raw)) + raw


def batch(base, entries, epoch=0, ms=1700000000000, attributes=0, producer=-1, compress=None, deltas=None, last=None):
    """entries: (key, value or None). `compress` turns the records into the bytes that stand in the batch."""
    body = b""
    deltas = deltas or range(len(entries))
    for delta, (key, value) in zip(deltas, entries):
        record = b"\0" + varint(0) + varint(delta) + varbytes(key) + varbytes(value) + varint(0)
        body += varint(len(record)) + record
    if compress:
        body = compress(body)
    last = max(deltas, default=0) if last is None else last
    rest = struct.pack(">hiqqqhii", attributes, last, ms, ms, producer, 0 if producer >= 0 else -1, -1, len(entries)) + body
    return struct.pack(">qiibI", base, len(rest) + 9, epoch, 2, crc32c(rest)) + rest


def control(offset, producer, commit):
    return batch(offset, [(struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0))], attributes=0x30, producer=producer)


# ---- Muster's log

def block(kind, sequence, payload=b"", salt=77, safe=0):
    rest = struct.pack(">QQQHHI24x", salt, sequence, safe, kind, 0, len(payload)) + payload
    out = struct.pack(">II", 0x4D4C4231, crc32c(rest)) + rest
    return out + bytes(-len(out) % ALIGN)


def identity(shards, start=0, worker=0, number=0, size=0, log=LOG_ID):
    return struct.pack(">I16sIQIQQ", 1, log, shards, start, worker, number, size)


def segment(shards, start, number, blocks, end=True):
    """blocks: lists of (shard, batch)."""
    out = block(1, 0, identity(shards, start, 0, number, 1 << 20))
    for sequence, batches in enumerate(blocks, 1):
        out += block(2, sequence, b"".join(struct.pack(">II", shard, len(b)) + b for shard, b in batches), safe=sequence)
    return out + block(3, len(blocks) + 1, safe=len(blocks) + 1) if end else out + bytes(2 * ALIGN)


def log(folder, shards, *segments):
    """segments: (start, number, blocks, end)."""
    os.makedirs(folder)
    with open(os.path.join(folder, "meta"), "wb") as out:
        out.write(block(4, 0, identity(shards), salt=0))
    for start, number, blocks, end in segments:
        with open(os.path.join(folder, f"{start:08x}-0000-{number:08x}.seg"), "wb") as out:
            out.write(segment(shards, start, number, blocks, end))
    return folder
