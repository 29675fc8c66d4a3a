"""The organiser's page: it loads nothing that its server does not serve, and says nothing as HTML."""

import re

from launch.live.organiser_page import SOURCES, pack_organiser_page
from launch.live.served import POLICY


def test_what_it_loads_is_served_and_nothing_else():
    files = pack_organiser_page()
    page = files["/organiser"].content.decode()
    named = set(re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page))
    scripts = [name for name in files if name.endswith(".js")]
    imported = {
        f"page/{name}"
        for script in scripts
        for name in re.findall(r'from "\./([^"]+)"', files[script].content.decode())
    }
    assert {f"/{name}" for name in named | imported} == set(files) - {"/organiser"}
    assert {path.name for path in SOURCES.glob("organiser*")} == {"organiser.html"} | {
        name.rpartition("/")[2] for name in files if name != "/organiser"
    }


def test_its_policy_lets_it_reach_its_server_alone_and_run_nothing_inline():
    file = pack_organiser_page()["/organiser"]
    policy = dict(each.split(" ", 1) for each in file.headers[POLICY].split("; "))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == policy["script-src"] == "'self'"
    assert not re.search(rb"<style|<script(?! type=\"module\" src=)|\son\w+=|\sstyle=", file.content)


def test_what_clients_say_is_never_markup():
    for name, file in pack_organiser_page().items():
        if name.endswith(".js"):
            assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", file.content), name
