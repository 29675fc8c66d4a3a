"""Where a live run listens and by which names: no name that somebody else's DNS gives it, and no other site's pages."""

import socket

import pytest
from certificates import make_certificate

from launch.live import door as door_module
from launch.live import guard
from launch.live.door import HERE, Door
from launch.live.guard import Bucket, raise_open_files
from launch.live.ports import listen
from tff_algos.settings.config_fields import ConfigError

EVERYWHERE = Door("0.0.0.0", public_url="https://fl.example.org/")


@pytest.mark.parametrize(
    ("door", "own", "others"),
    [
        (HERE, ["127.0.0.1", "localhost", "LOCALHOST", "::1"],
         ["example.org", "192.168.0.7", "", "127.0.0.1.example.org"]),
        (EVERYWHERE, ["127.0.0.1", "192.168.0.7", "fl.example.org", "fe80::1", socket.gethostname()],
         ["example.org", "evil.fl.example.org", "192.168.0.7.example.org"]),
        (Door("class.local"), ["class.local", "10.0.0.1"], ["other.local"]),
        (Door("0"), ["127.0.0.1", "192.168.0.7"], ["0", "example.org"]),
        (Door("127.1"), ["127.0.0.1", "localhost"], ["192.168.0.7"]),
    ],
)  # fmt: skip
def test_it_is_spoken_to_by_its_own_names_alone(door, own, others):
    assert all(map(door.has_name, own)) and not any(map(door.has_name, others))


def test_pages_of_other_sites_and_of_other_ports_are_not_its_own():
    assert HERE.is_own("http://127.0.0.1:8700", "127.0.0.1:8700")
    for origin in ("http://127.0.0.1:8000", "https://127.0.0.1:8700", "http://localhost:8700", "null", ""):
        assert not HERE.is_own(origin, "127.0.0.1:8700")
    assert EVERYWHERE.is_own("https://fl.example.org", "127.0.0.1:8700")  # a proxy asks by another name
    assert not EVERYWHERE.is_own("http://fl.example.org", "127.0.0.1:8700")


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://Example.org:443/", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("https://example.org:80", "https://example.org:80"),
        ("HTTP://[2001:DB8::1]:443", "http://[2001:db8::1]:443"),
    ],
)
def test_a_public_address_is_named_as_browsers_name_it(url, base):
    door = Door(public_url=url)
    door.check()
    assert door.name_base(8700) == base and door.is_own(base, "127.0.0.1:8700")
    assert door.has_name(base.partition("//")[2].removesuffix(":80").removesuffix(":443").strip("[]"))


def test_links_have_the_address_by_which_clients_reach_it():
    assert HERE.name_base(8700) == "http://127.0.0.1:8700"
    assert EVERYWHERE.name_base(8700) == "https://fl.example.org"
    assert Door("::1", certificate="c.pem").name_base(1) == "https://[::1]:1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "0x0", "0:0::0"])
def test_on_all_addresses_links_have_that_of_the_machine_in_its_network(host, monkeypatch):
    class Routed:
        def connect(self, address):
            assert address[0] == "192.0.2.1"

        def getsockname(self):
            return "10.1.2.3", 4567

        __enter__, __exit__ = (lambda self: self), (lambda self, *_: None)

    class InNoNetwork(Routed):
        def connect(self, address):
            raise OSError

    monkeypatch.setattr(door_module.socket, "socket", lambda *_: Routed())
    assert Door(host).name_base(8700) == "http://10.1.2.3:8700"
    monkeypatch.setattr(door_module.socket, "socket", lambda *_: InNoNetwork())
    assert Door(host).name_base(8700) == "http://127.0.0.1:8700"


@pytest.mark.parametrize(
    ("door", "is_private"),
    [(HERE, True), (Door("0.0.0.0"), False), (Door("0.0.0.0", "c.pem"), True), (EVERYWHERE, False),
     (Door(public_url="https://a"), True), (Door(public_url="HTTP://a"), False), (Door("127.1"), True),
     (Door("0.0.0.0", public_url="http://a"), False), (Door("0.0.0.0", "c.pem", public_url="https://a"), True)],
)  # fmt: skip
def test_what_others_could_read_is_known(door, is_private):
    assert door.is_private == is_private


def check(door):
    with pytest.raises(ConfigError) as error:
        door.check()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_mistakes_are_one_line(tmp_path):
    certificate, key = make_certificate(tmp_path)
    Door("127.0.0.1", certificate, key).check()
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other")[1]
    text = tmp_path / "text"
    text.write_text("no certificate")
    assert check(Door(certificate="none.pem")).startswith(
        "tls_certificate=none.pem: expected a PEM file that can be read"
    )
    assert check(Door("", certificate, str(tmp_path))).startswith(f"tls_key={tmp_path}: expected a PEM file that can")
    for files, expected in (
        ((certificate, ""), "its key in the file, too, or by --tls_key=<PEM file>"),
        ((certificate, other), "a certificate and its key, in PEM files that fit together, the key without a password"),
        ((str(text), key), "a PEM file of a certificate ("),
        ((certificate, str(text)), f"its key in --tls_key={text}"),
        ((key, certificate), "a PEM file of a certificate; it seems to be swapped with --tls_key"),
    ):
        assert check(Door("", *files)).startswith(f"tls_certificate={files[0]}: expected {expected}")
    beside = check(Door("0", certificate, key))
    assert beside.startswith(f"tls_certificate={certificate}: expected --public_url beside it where --host=0, since")
    Door("0.0.0.0", certificate, key, "https://fl.example.org:8700").check()
    wrong_ports = "https://example.org:99999", "https://example.org:0", "https://example.org:123456"
    for url in ("example.org", "https://example.org/live", "ftp://example.org", "https://a b", *wrong_ports):
        assert check(Door(public_url=url)).startswith(f"public_url={url}: expected an address without a path")


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.name.invalid", "a b"])
def test_an_address_of_another_machine_is_one_line(host):
    with pytest.raises(ConfigError) as error:
        listen(host, 0)
    assert str(error.value).startswith(f"host={host}: expected an address or a name of this machine (")


def test_a_bucket_lets_through_some_at_once_and_then_by_the_second():
    bucket = Bucket(3, 0.5)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(101.0) and bucket.take(102.0) and not bucket.take(102.0)
    assert not bucket.is_full(105.0) and bucket.is_full(108.0)
    assert [bucket.take(1e6) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("limits", "wanted", "expected", "is_set"),
    [
        ((1024, 20_000), 5000, 5000, 5000 + guard.OTHER_FILES),
        ((1024, 4096), 5000, 4096 - guard.OTHER_FILES, 4096),
        ((1024, -1), 5000, 5000, 5000 + guard.OTHER_FILES),
        ((1024, 4096), 100, 100, None),
        ((-1, -1), 10**6, 10**6, None),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_may(monkeypatch, limits, wanted, expected, is_set):
    found = []
    monkeypatch.setattr(guard.resource, "getrlimit", lambda what: limits)
    monkeypatch.setattr(guard.resource, "setrlimit", lambda what, given: found.append(given))
    assert raise_open_files(wanted) == expected
    assert found == ([(is_set, limits[1])] if is_set else [])
