"""thimble, as it is shipped, with long time-outs and no access log."""
binary = "repo:build/release/thimble"
version = ["version"]
tls = False
services = True
health = True

CONF = """
workers: @workers@
listen: 127.0.0.1:@port@
timeouts: {head: 1h, handshake: 10m, body: 1h, write: 1h, idle: 1h, first_byte: 1h, between_bytes: 1h, upstream_idle: 1h}
log: {access: @access@, level: warn}
"""


STREAM = """
workers: @workers@
listen: {address: "127.0.0.1:@port@", service: u}
services: {u: "@up_host@:@up_port@"}
timeouts: {tunnel: 1d}
log: {access: off, level: warn}
"""


def stream(b, p):
    return [b, "run", "-c", p.write("thimble.yaml", p.fill(STREAM))]


def start(b, p):
    text = p.fill(CONF).replace("@access@", getattr(p, "access_log", None) or "off")
    if p.compress:
        text += "defaults: {compress: {encodings: %s, level: %s}}\nlimits: {compress: 8GiB}\n" % (p.compress[0], p.compress[1])
    if p.health:
        text += "defaults: {health: {http: /health, interval: 10s}}\n"
    if p.services:
        text += "routes:\n" + "".join("  - {host: %s, service: s%d}\n" % (h, i) for i, (h, _) in enumerate(p.services))
        text += "services:\n" + "".join("  s%d: [%s]\n" % (i, ", ".join("%s:%d" % e for e in ends))
                                        for i, (_, ends) in enumerate(p.services))
    else:
        text += p.fill("routes: [{service: u}]\nservices: {u: [@up_host@:@up_port@]}\n")
    return [b, "run", "-c", p.write("thimble.yaml", text)]
