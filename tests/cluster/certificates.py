# tests/cluster/certificates.py - an authority and certificates for one test, made by the command openssl in some milliseconds.
import subprocess

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

# `openssl req` and `x509` sign for days from now on only; what has expired has to be made by `ca`.
CA = """
[ca]
default_ca = here
[here]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
"""


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"openssl {words}: {done.stderr}"
    return done.stdout


class Authority:
    def __init__(self, folder, name="cluster"):
        self.folder = folder / f"authority-{name}"
        self.folder.mkdir()
        self.file, self.key = self.folder / "ca.pem", self.folder / "ca.key"
        openssl("req", "-x509", *EC, "-days", 3650, "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                "-keyout", self.key, "-out", self.file)

    def sign(self, name):
        """(certificate, key), good for the host names that tests use."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        openssl("req", "-x509", "-CA", self.file, "-CAkey", self.key, *EC, "-days", 30, "-subj", f"/CN={name}", "-keyout", key,
                "-out", certificate, "-addext", "basicConstraints=critical,CA:FALSE", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1")
        return certificate, key

    def sign_expired(self, name):
        certificate, key, request = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        (self.folder / "index.txt").touch()
        (self.folder / "ca.cnf").write_text(CA.format(folder=self.folder))
        openssl("req", *EC, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("ca", "-batch", "-notext", "-config", self.folder / "ca.cnf", "-cert", self.file, "-keyfile", self.key, "-in", request,
                "-out", certificate, "-startdate", "20200101000000Z", "-enddate", "20210102030405Z")
        return certificate, key

    def options(self, name):
        """For a node."""
        certificate, key = self.sign(name)
        return ["--tls-cert", certificate, "--tls-key", key, "--tls-ca", self.file]
