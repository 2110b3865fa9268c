"""A real Kafka broker to measure against: one node on loopback with Kafka's own defaults, pinned to one CPU and warmed up.

The artifacts are those of tests/diff (broker.py says where they come from). What is not the default, and why:
  replication of the internal topics is 1   there is one node
  socket.listen.backlog.size                1,000 members connect within a second; with 50 places the kernel drops some, and they try for a minute
"""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "tests", "diff"))
import broker  # noqa: E402

HOST, PORT, CONTROLLER_PORT = "127.0.0.1", 29092, 29093
START_SECONDS = 60

Missing = broker.Missing


def jars():
    """The folder of the jars; raises Missing."""
    return broker.jars()


def start(jars_folder, folder, cpu):
    """A broker that answers; the process is the caller's to stop. It does not die of SIGUSR1, with which the client asks our servers for counters."""
    java = ["java", "-Xms1g", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", os.path.join(jars_folder, "*")]
    properties = os.path.join(folder, "kafka.properties")
    settings = {
        "process.roles": "broker,controller", "node.id": 1, "controller.quorum.voters": f"1@{HOST}:{CONTROLLER_PORT}",
        "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:{CONTROLLER_PORT}", "advertised.listeners": f"PLAINTEXT://{HOST}:{PORT}",
        "controller.listener.names": "CONTROLLER", "log.dirs": os.path.join(folder, "kafka-data"), "socket.listen.backlog.size": 4096,
        "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1, "share.coordinator.state.topic.min.isr": 1,
    }
    with open(properties, "w") as out:
        out.writelines(f"{name}={value}\n" for name, value in settings.items())
    log = open(os.path.join(folder, "kafka.log"), "ab")
    subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", broker.CLUSTER_ID, "-c", properties], stdin=subprocess.DEVNULL, stdout=log,
                   stderr=log, check=True, timeout=START_SECONDS)
    words = ["sh", "-c", "trap '' USR1; exec \"$@\"", "kafka", "taskset", "-c", str(cpu), *java, "kafka.Kafka", properties]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection((HOST, PORT), 1).close()
            make_offsets_topic()
            return process
        except OSError:
            time.sleep(0.2)
    process.kill()
    raise RuntimeError("Kafka did not start: see %s" % log.name)


def make_offsets_topic():
    """Asks for a coordinator until there is one: the first question creates __consumer_offsets. FindCoordinator 0, group "bench"."""
    request = bytes.fromhex("000a 0000 00000001 0005") + b"bench" + bytes.fromhex("0005") + b"bench"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with socket.create_connection((HOST, PORT), 5) as s:
            s.sendall(len(request).to_bytes(4, "big") + request)
            answer = s.recv(512)
        if answer[8:10] == b"\x00\x00":
            return
        time.sleep(0.5)
    raise RuntimeError("Kafka made no coordinator within %d s" % START_SECONDS)


def make_topic(name):
    """Asks for the topic's metadata until there is such a topic: the first question creates it. Metadata 4."""
    asked = len(name).to_bytes(2, "big") + name.encode()
    request = bytes.fromhex("0003 0004 00000001 0005") + b"bench" + bytes.fromhex("00000001") + asked + b"\x01"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with socket.create_connection((HOST, PORT), 5) as s:
            s.sendall(len(request).to_bytes(4, "big") + request)
            answer = s.recv(4096)
        at = answer.rfind(asked)
        if at >= 2 and answer[at - 2:at] == b"\x00\x00":
            return
        time.sleep(0.5)
    raise RuntimeError("Kafka made no topic within %d s" % START_SECONDS)
