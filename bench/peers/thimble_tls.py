"""thimble with a listener for TLS beside the plain one: apart, since a process without TLS never starts OpenSSL."""
import thimble

peer = "thimble-tls"
binary, version = thimble.binary, thimble.version
tls = True
services = health = False

TLS = "  - {address: 127.0.0.1:@tls_port@, tls: {certificates: [{cert: @cert@, key: @key@}]}}\n"


def start(b, p):
    command = thimble.start(b, p)
    with open(command[-1]) as f:
        text = f.read()
    text = text.replace("listen: 127.0.0.1:%d\n" % p.port, "listen:\n  - 127.0.0.1:%d\n" % p.port + p.fill(TLS))
    return command[:-1] + [p.write("thimble-tls.yaml", text)]
