"""A real Kafka broker for the time of a test: its artifacts, one combined node on loopback, and what both servers are set to.

Artifacts: the folder $MUSTER_KAFKA_JARS, or else a folder of the user's cache that mvn fills once (92 jars, 54 MB).
"""
import os
import shutil
import signal
import socket
import subprocess
import time

VERSION = "4.3.1"
CLUSTER_ID = "TXVzdGVyRGlmZmVyZW5jZQ"  # 22 characters, 16 bytes in base64
NODE_ID = 1000
ADDRESS = ("127.0.0.1", 29092)
CONTROLLER_PORT = 29093
START_SECONDS = 60

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>muster</groupId><artifactId>diff</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""


class Missing(Exception):
    """The broker cannot be had here; the text says why."""


def complete(folder):
    return os.path.exists(os.path.join(folder, f"kafka_2.13-{VERSION}.jar"))


def fetch(folder):
    """Fills `folder` by mvn, all or nothing."""
    if shutil.which("mvn") is None:
        raise Missing(f"no Kafka {VERSION}: MUSTER_KAFKA_JARS is not set, and there is no mvn to fetch it with")
    part = f"{folder}.part-{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    try:
        with open(os.path.join(part, "pom.xml"), "w") as out:
            out.write(POM)
        try:
            done = subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=part,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise Missing(f"no Kafka {VERSION}: mvn did not get it within 300 s") from None
        if done.returncode != 0 or not complete(os.path.join(part, "jars")):
            last = (done.stdout.strip().splitlines() or ["no output"])[0]
            raise Missing(f"no Kafka {VERSION}: mvn cannot fetch it here: {last[:200]}")
        if not complete(folder):
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(os.path.join(part, "jars"), folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def jars():
    """The folder of the jars; raises Missing."""
    if shutil.which("java") is None:
        raise Missing("there is no java to run Kafka with")
    named = os.environ.get("MUSTER_KAFKA_JARS")
    if named:
        if not complete(named):
            raise Missing(f"MUSTER_KAFKA_JARS={named} holds no kafka_2.13-{VERSION}.jar")
        return os.path.abspath(named)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "muster", f"kafka-{VERSION}")
    if not complete(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        fetch(folder)
    return folder


class Broker:
    """A broker process in `folder`, which is the caller's to remove."""

    def __init__(self, jars_folder, folder, settings):
        self.folder, self.log = folder, os.path.join(folder, "kafka.log")
        self.words = ["java", "-Xmx900m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                      "-cp", os.path.join(jars_folder, "*")]
        self.properties = os.path.join(folder, "server.properties")
        listener = f"{ADDRESS[0]}:{ADDRESS[1]}"
        lines = {
            "process.roles": "broker,controller", "node.id": NODE_ID, "controller.quorum.voters": f"{NODE_ID}@{ADDRESS[0]}:{CONTROLLER_PORT}",
            "listeners": f"PLAINTEXT://{listener},CONTROLLER://{ADDRESS[0]}:{CONTROLLER_PORT}", "advertised.listeners": f"PLAINTEXT://{listener}",
            "controller.listener.names": "CONTROLLER", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": os.path.join(folder, "data"), "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1, "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1, "auto.create.topics.enable": "false",
            # One thread each: what was sent first is decided first, and a probe behind a request tells that it was.
            "num.network.threads": 1, "num.io.threads": 1, "group.coordinator.threads": 1, **settings,
        }
        with open(self.properties, "w") as out:
            out.writelines(f"{name}={value}\n" for name, value in lines.items())
        self.process = None

    def start(self):
        with open(self.log, "ab") as out:
            if not os.path.exists(os.path.join(self.folder, "data", "meta.properties")):
                subprocess.run([*self.words, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self.properties],
                               stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True, timeout=START_SECONDS)
            self.process = subprocess.Popen([*self.words, "kafka.Kafka", self.properties], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(ADDRESS, 1).close()
                return
            except OSError:
                time.sleep(0.1)
        with open(self.log, errors="replace") as text:
            raise RuntimeError("Kafka did not start:\n" + "".join(text.readlines()[-30:]))

    def stop(self, gently=False):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM if gently else signal.SIGKILL)
            self.process.wait()
