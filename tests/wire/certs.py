"""Certificates for tests, made by the openssl command: an authority, what it issues and revokes, and what examples name."""
import datetime
import os
import re
import ssl
import subprocess

KEYS = {
    "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-newkey", "rsa:2048"],
    "ed25519": ["-newkey", "ed25519"],
}

CONFIG = """
[ca]
default_ca = it
[it]
dir = %s
database = $dir/index.txt
serial = $dir/serial
crlnumber = $dir/crlnumber
new_certs_dir = $dir
default_md = default
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = optional
"""


def openssl(*args):
    r = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    return r.stdout


def names(hosts):
    """As subjectAltName has them; a host with a colon in it is one already, `IP:10.0.0.1` or `URI:spiffe://...`."""
    return "subjectAltName=" + ",".join(h if ":" in h else "DNS:" + h for h in hosts)


def when(days):
    """`days` from now, which may be negative or a fraction, as openssl has it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Pair:
    """A certificate and its key: paths of two files."""

    def __init__(self, folder, name):
        self.cert = os.path.join(str(folder), name + ".pem")
        self.key = os.path.join(str(folder), name + ".key")

    def yaml(self):
        return "{ cert: %s, key: %s }" % (self.cert, self.key)


class Authority(Pair):
    """An authority of its own, in files of `folder` that begin with `name`."""

    def __init__(self, folder, name="ca", key="ec", subject=None):
        super().__init__(folder, name)
        self.folder = folder = os.path.join(str(folder), name + ".d")
        os.makedirs(folder)
        for file, text in (("index.txt", ""), ("serial", "01\n"), ("crlnumber", "01\n"), ("config", CONFIG % folder)):
            with open(os.path.join(folder, file), "w") as f:
                f.write(text)
        openssl("req", "-x509", *KEYS[key], "-nodes", "-keyout", self.key, "-out", self.cert, "-days", "365",
                "-subj", "/CN=" + (subject or name))

    def _ca(self, *args):
        return openssl("ca", "-batch", "-config", os.path.join(self.folder, "config"), "-cert", self.cert, "-keyfile", self.key,
                       *args)

    def issue(self, folder, name, hosts=(), key="ec", begins=-1, days=90, subject=None, usage=None):
        """A Pair, in files NAME.pem and NAME.key of `folder`, good from `begins` days from now to `days` days from now; `usage`: what
        for alone, `clientAuth` or `serverAuth`."""
        pair = Pair(folder, name)
        request = os.path.join(self.folder, "request")
        openssl("req", "-new", *KEYS[key], "-nodes", "-keyout", pair.key + ".new", "-out", request,
                "-subj", "/CN=" + (subject or (hosts[0] if hosts else name)), *(["-addext", names(hosts)] if hosts else []),
                *(["-addext", "extendedKeyUsage=" + usage] if usage else []))
        self._ca("-in", request, "-out", pair.cert + ".new", "-notext", "-startdate", when(begins), "-enddate", when(days))
        os.rename(pair.key + ".new", pair.key)
        os.rename(pair.cert + ".new", pair.cert)
        return pair

    def revoke(self, pair):
        self._ca("-revoke", pair.cert)

    def crl(self, path, days=30):
        """Writes the list of what was revoked."""
        self._ca("-gencrl", "-crldays", str(days), "-out", str(path))
        return str(path)


EXAMPLE_FOLDER = "/etc/thimble/tls/"


def provide(text, folder):
    """An example of a configuration whose files of TLS are there: made in `folder`, for the hosts of its routes."""
    folder = os.path.join(str(folder), "")
    files = set(re.findall(re.escape(EXAMPLE_FOLDER) + r"([\w.-]+)", text))
    hosts = []
    for found in re.findall(r"\bhost: *(\[[^\]]*\]|\S+)", text):
        hosts += re.findall(r"[\w*-]+(?:\.[\w-]+)+", found)
    ca = Authority(folder, "the-ca") if files else None
    for file in sorted(files):
        stem, ending = os.path.splitext(file)
        if ending == ".key":
            continue
        if stem + ".key" in files:
            named = [h for h in hosts if re.match(r"(?:\*\.|www\.)?%s\." % re.sub(r"-rsa$", "", stem), h)]
            ca.issue(folder, stem, named or hosts or ["example.com"], "rsa" if stem.endswith("-rsa") else "ec")
        else:
            with open(ca.cert) as f, open(folder + file, "w") as to:
                to.write(f.read())
    return text.replace(EXAMPLE_FOLDER, folder)


def trusting(ca, **more):
    """What a client needs to talk to a server with a certificate of this authority; `cert` is a Pair that it shows."""
    context = ssl.create_default_context(cafile=ca.cert)
    if more.get("cert"):
        context.load_cert_chain(more["cert"].cert, more["cert"].key)
    return context


def shake(client, context, name):
    """A client of the harness (a Stream) that has just connected speaks TLS from here on; itself."""
    client.sock = context.wrap_socket(client.sock, server_hostname=name)
    return client


def hosts_of(client):
    """The names in the certificate that was shown to it."""
    return [value for kind, value in client.sock.getpeercert()["subjectAltName"] if kind == "DNS"]
