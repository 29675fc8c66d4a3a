"""A certificate of this machine's loopback that nobody has signed, for tests of TLS."""

import subprocess

import pytest


def make_certificate(folder):
    """Paths of a certificate for 127.0.0.1 and localhost, and of its key; the test is skipped without openssl."""
    paths = str(folder / "certificate.pem"), str(folder / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*command, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not here")
    return paths
