#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_tcp.c (the format of a step stands at its top) into the folder given as argument."""
import os
import struct
import sys

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
ECHO, HOLD, CLOSE_ON_FIN, ABORT_ON_DATA, REFUSE, CLOSE_ON_DATA = 1, 2, 4, 8, 16, 32
SYN_OPTIONS = 4 | 8 | 0x20 | 1          # MSS 1460, scale 2, SACK permitted, timestamps
TS = 1 | 0x40                           # the timestamp of the last segment again
SACK = TS | 2


def op(what, which=0):
    return bytes([what | which << 4])


def wait(ms):
    return op(0) + struct.pack(">H", ms)


def flush():
    return op(1)


def raw(data, which=0):
    return op(2, which) + bytes([len(data)]) + data


def seg(flags, seq=0, ack=0, window=0xffff, length=0, options=0, which=0):
    return op(3, which) + struct.pack(">BhhHHB", flags, seq, ack, window, length, options)


def send(length, which=0):
    return op(4, which) + struct.pack(">H", length)


def close(which=0):
    return op(5, which)


def abort(which=0):
    return op(6, which)


def release(n, which=0):
    return op(7, which) + bytes([n])


def connect(which=0):
    return op(8, which)


def tx_full():
    return op(9)


def mood(bits):
    return op(10) + bytes([bits])


def opened(which=0, options=0):
    return seg(SYN, options=SYN_OPTIONS if options else 4 | 8, which=which) + seg(ACK, options=options, which=which) + flush()


FILES = {
    "request_reply": mood(ECHO) + opened() + seg(PSH | ACK, length=130) + flush() + seg(PSH | ACK, length=130) + flush(),
    "timestamps": mood(ECHO) + opened(options=TS) + seg(PSH | ACK, length=130, options=TS) + flush() + seg(ACK, options=TS),
    "out_of_order": opened(options=TS) + b"".join(seg(ACK, seq=s, length=500, options=TS) for s in (1000, 3000, 1500, 500, 0)) + flush(),
    "fin_ahead": mood(CLOSE_ON_FIN) + opened() + seg(FIN | ACK, seq=100, length=50) + seg(ACK, length=100) + flush() + seg(ACK),
    "we_close": opened() + close() + flush() + seg(ACK) + seg(FIN | ACK) + flush() + wait(11000),
    "simultaneous_close": opened() + close() + flush() + seg(FIN | ACK, ack=-1) + flush() + seg(ACK) + wait(11000),
    "time_wait_syn": opened() + close() + flush() + seg(FIN | ACK) + flush() + seg(SYN, seq=500, options=12) + seg(ACK) + flush(),
    "fast_retransmit": opened() + send(14600) + flush() + seg(ACK, ack=-14600) * 4 + flush() + seg(ACK, ack=-11000) + flush() + seg(ACK),
    "sack_recovery": opened(options=TS) + send(14480) + flush() + seg(ACK, ack=-14480, options=SACK | 0x30) +
                     seg(ACK, ack=-14480, options=SACK | 0x98) * 3 + flush() + seg(ACK, options=TS) + flush(),
    "retransmission_timeout": opened() + send(5000) + flush() + wait(60) + wait(120) + wait(240) + seg(ACK, ack=-3540) + flush() + wait(500),
    "zero_window": opened() + seg(ACK, window=0) + send(3000) + flush() + wait(60) + wait(120) + seg(ACK, window=0) + seg(ACK, window=2000) +
                   flush() + wait(60),
    "held_window": mood(HOLD) + opened() + seg(ACK, length=1400) * 15 + flush() + release(100) + flush() + release(255) + flush(),
    "keepalive": opened() + wait(30001) + wait(5000) + seg(ACK) + wait(30001) + wait(5000) * 8,
    "active_open": connect() + seg(SYN | ACK, options=SYN_OPTIONS) + flush() + send(100) + flush() + seg(ACK, options=TS),
    "simultaneous_open": connect() + seg(SYN, options=12) + seg(ACK) + flush(),
    "connect_refused": connect() + seg(RST | ACK) + flush() + connect(1) + wait(1000) + wait(2000) + wait(4000) * 10,
    "challenge": opened() + seg(RST, seq=10) + flush() + wait(200) + seg(SYN, seq=20) + flush() + wait(200) + seg(ACK, ack=100) + flush() + seg(RST),
    "abort_inside": mood(ABORT_ON_DATA) + opened() + seg(ACK, seq=10, length=10) + seg(ACK, length=10) + seg(ACK, length=5) + flush(),
    "refused": mood(REFUSE) + opened() + seg(ACK, length=5) + mood(0) + opened(3),
    "no_memory": opened() + send(60000) + send(60000) + send(60000) + flush() + opened(1) + abort(1) + flush(),
    "lower_layer_full": opened() + tx_full() + send(3000) + flush() + wait(60) + tx_full() + flush() + seg(ACK, ack=-1540) + wait(200),
    "four_connections": mood(ECHO | CLOSE_ON_FIN) + b"".join(opened(i) for i in range(3)) +
                        b"".join(seg(ACK | PSH, length=100 + i, which=i) for i in range(3)) + flush() +
                        b"".join(seg(FIN | ACK, which=i) for i in range(3)) + flush() + b"".join(seg(ACK, which=i) for i in range(3)),
    "malformed": raw(b"") + raw(bytes(19)) + raw(bytes(12) + b"\xf0\x02" + bytes(20)) + raw(bytes(12) + b"\x60\x02" + bytes(6) + b"\x02\x00\x00\x00") +
                 opened() + raw(bytes(12) + b"\x60\x10" + bytes(6) + b"\x05\x0a\x00\x00"),
    "half_open_storm": b"".join(seg(SYN, options=12, which=i) + abort(i) for i in range(3)) * 6 + wait(1000) + wait(2000) + wait(4000),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, data in FILES.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    print(f"{len(FILES)} files")


if __name__ == "__main__":
    main()
