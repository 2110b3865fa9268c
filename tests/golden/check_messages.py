#!/usr/bin/env python3
"""Compares messages.def with the message definitions inside Kafka's own client jar: field by field, version by version.

usage: check_messages.py DUMP_MESSAGES

DUMP_MESSAGES is the program built from dump_messages.c. The jar is kafka-clients-*.jar in the folder $MUSTER_KAFKA_JARS, or else fetched by
mvn into a cache in the user's home. Exit 0: the same. 1: differences, each printed. 77: no jar to be had (a skip).

For every version that both know, both sides are flattened to the list of what goes over the wire, in order: path, type, nullable, default
and tag. The lists must be equal. Versions below Kafka's lowest are ours alone; they are named in the last line and compared with an older
jar when $MUSTER_KAFKA_JARS points to one (then our newer versions are what is left out).
"""
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ARTIFACT = "org.apache.kafka:kafka-clients:4.3.1"
PRIMITIVES = {"boolean": "bool", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uuid": "uuid", "string": "string",
              "bytes": "bytes", "records": "records"}


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def find_jar():
    folder = os.environ.get("MUSTER_KAFKA_JARS")
    if folder:
        jars = sorted(Path(folder).glob("kafka-clients-*.jar"))
        if not jars:
            sys.exit(f"MUSTER_KAFKA_JARS={folder}: no kafka-clients-*.jar there")
        return jars[-1]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"
    jar = cache / "kafka-clients-{}.jar".format(ARTIFACT.split(":")[2])
    if not jar.exists():
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={cache}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        except FileNotFoundError:
            skip("no MUSTER_KAFKA_JARS, and no mvn to fetch " + ARTIFACT)
        except subprocess.TimeoutExpired:
            skip("no MUSTER_KAFKA_JARS, and mvn did not fetch " + ARTIFACT + " in time")
        if done.returncode != 0 or not jar.exists():
            why = (done.stdout + done.stderr).strip().splitlines()
            skip(f"no MUSTER_KAFKA_JARS, and mvn could not fetch {ARTIFACT}: {why[0] if why else 'no reason given'}")
    return jar


class Ours:
    """messages.def as dump_messages tells it."""

    def __init__(self, program):
        self.messages = {}
        self.structs = {}
        for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, *rest = line.split()
            if kind == "last":
                self.last = int(rest[0])
            elif kind == "message":
                name, kafka, *numbers = rest
                key, lowest, highest, flexible = map(int, numbers)
                self.messages[kafka] = {"name": name, "key": key, "lowest": lowest, "highest": highest, "flexible": flexible}
                fields = self.structs[name] = {"kafka": kafka, "message": kafka, "fields": []}
            elif kind == "struct":
                name, message, kafka = rest
                fields = self.structs[name] = {"kafka": kafka, "message": message, "fields": []}
            else:
                what, of, name, begin, end, null, default, tag = rest
                fields["fields"].append({"kind": what, "type": of, "name": name, "from": int(begin), "to": int(end), "null": int(null),
                                         "default": default, "tag": int(tag)})

    def flatten(self, struct, version, message, path=""):
        for f in self.structs[struct]["fields"]:
            if not f["from"] <= version <= f["to"]:
                continue
            of = PRIMITIVES.get(f["type"]) or self.structs[f["type"]]["kafka"]
            default = {"empty": "", "null": None, "-": "-"}.get(f["default"], f["default"])
            if f["type"] == "boolean":
                default = str(default == "1")
            here = path + f["name"].replace("_", "")
            yield (here, ("[]" if f["kind"] == "array" else "") + of, version >= f["null"], default, f["tag"])
            if f["type"] not in PRIMITIVES:
                if self.structs[f["type"]]["message"] != message:
                    yield (here, "struct row of another message", self.structs[f["type"]]["message"])
                yield from self.flatten(f["type"], version, message, here + ".")


def versions(text):
    """Kafka's notation: "3", "3+", "3-7", "none"."""
    if text is None or text == "none":
        return range(0)
    match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    begin = int(match[1])
    return range(begin, 1 << 15 if match[2] == "+" else int(match[3] or begin) + 1)


def kafka_default(field, of):
    default = field.get("default")
    if of.startswith("[]") or of in ("bytes", "records") or of not in PRIMITIVES.values():
        return "-"
    if of == "string":
        return None if default == "null" else default or ""
    if of == "bool":
        return str(str(default).lower() == "true")
    if of == "uuid":
        return "0" if default is None else default
    return str(int(str(default or 0), 0))


def kafka_structs(message):
    """All element types of a message: name to fields."""
    found = {s["name"]: s["fields"] for s in message.get("commonStructs", [])}
    waiting = list(message["fields"]) + [f for s in found.values() for f in s]
    while waiting:
        field = waiting.pop()
        if "fields" in field:
            found[field["type"].replace("[]", "")] = field["fields"]
            waiting += field["fields"]
    return found


def kafka_flatten(fields, structs, version, path=""):
    for f in fields:
        if version not in versions(f["versions"]):
            continue
        here = path + f["name"].lower()
        of = f["type"]
        tag = f["tag"] if version in versions(f.get("taggedVersions")) else -1
        yield (here, of, version in versions(f.get("nullableVersions")), kafka_default(f, of), tag)
        element = of.replace("[]", "")
        if element in structs:
            yield from kafka_flatten(structs[element], structs, version, here + ".")


def compare_message(ours, kafka, definition):
    """Yields the differences."""
    mine = ours.messages[kafka]
    valid = versions(definition["validVersions"])
    flexible = versions(definition["flexibleVersions"])
    if mine["key"] != definition["apiKey"]:
        yield f"{kafka}: api key {mine['key']}, Kafka has {definition['apiKey']}"
    structs = kafka_structs(definition)
    for version in range(max(mine["lowest"], valid.start), min(mine["highest"], valid.stop - 1) + 1):
        if (version >= mine["flexible"]) != (version in flexible):
            yield f"{kafka} {version}: flexible or not"
        left = list(ours.flatten(mine["name"], version, kafka))
        right = list(kafka_flatten(definition["fields"], structs, version))
        for i in range(max(len(left), len(right))):
            a, b = left[i] if i < len(left) else None, right[i] if i < len(right) else None
            if a != b:
                yield f"{kafka} {version}: field {i}: ours {a}, Kafka's {b}"
                break


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ours = Ours(sys.argv[1])
    jar = find_jar()
    differences, compared, alone = [], 0, []
    with zipfile.ZipFile(jar) as archive:
        for kafka, mine in ours.messages.items():
            text = archive.read(f"common/message/{kafka}.json").decode()
            definition = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
            differences += compare_message(ours, kafka, definition)
            valid = versions(definition["validVersions"])
            for version in range(mine["lowest"], mine["highest"] + 1):
                if version in valid:
                    compared += 1
                else:
                    alone.append(f"{kafka} {version}")
            if mine["highest"] < valid.stop - 1:
                differences.append(f"{kafka}: we end at {mine['highest']}, Kafka at {valid.stop - 1}")
    print("\n".join(differences))
    print(f"{jar.name}: {compared} message versions compared, {len(differences)} differences; not in this Kafka: {', '.join(alone)}")
    sys.exit(1 if differences or compared == 0 else 0)


if __name__ == "__main__":
    main()
