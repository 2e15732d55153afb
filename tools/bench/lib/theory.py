# tools/bench/lib/theory.py - what an iteration has to cost at least, from shapes and rates alone.
"""P hosts, each worker and server shard at once; S bytes of learned values; a full-duplex link per host.

  parameter server, and ring all-reduce   2 S (P - 1) / P bytes out and as many in, per host and iteration
  the bound                               max(compute, bytes / rate): everything hidden that can be

A link of R bit/s carries GOODPUT of that as payload: the rest are the headers of 1500-byte Ethernet frames.
"""

GOODPUT = 0.956


def server_bytes(parameter_bytes, hosts):
    return 2 * parameter_bytes * (hosts - 1) / hosts


def wire_seconds(number_of_bytes, bits_per_s):
    return number_of_bytes * 8 / (bits_per_s * GOODPUT)


def bound_seconds(compute_s, number_of_bytes, bits_per_s):
    return max(compute_s, wire_seconds(number_of_bytes, bits_per_s))
