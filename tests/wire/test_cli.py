"""The command line: what it prints, and the exit codes 0, 1 and 2."""
import re
import resource
import socket

import pytest

from harness import Thimble, config, free_port


def finished(stage, *args, **more):
    """Runs the program to its end: (exit code, standard output, standard error)."""
    p = Thimble(list(args), ready=False, **more)
    code = p.wait()
    p.check_clean()
    return code, p.out.text(), p.err.text()


def test_version(stage):
    code, out, err = finished(stage, "version")
    assert code == 0 and re.search(r"thimble \d+\.\d+\.\d+", out) and not err


@pytest.mark.parametrize("args", [["help"], ["--help"]])
def test_help_names_every_command(stage, args):
    code, out, err = finished(stage, *args)
    assert code == 0 and not err
    for word in ("run", "check", "schema", "keys", "version", "-c", "--to", "--listen"):
        assert word in out


def test_keys_are_tables(stage):
    code, out, err = finished(stage, "keys")
    assert code == 0 and not err
    assert "\n| `head` | size, 1KiB to 16MiB | `64KiB` | " in out


@pytest.mark.parametrize("args", [["nosuch"], ["keys", "-c", "a"], ["keys", "x"], ["run", "--nosuch"], ["run", "-c"], ["check", "-c", "a", "extra"],
                                  ["run", "--to"], ["run", "--to", "not an address"]])
def test_wrong_usage_is_2(stage, args):
    code, out, err = finished(stage, *args)
    assert code == 2 and err and not out


def test_check_of_a_good_file(stage):
    path = stage.file("good.yaml", config({"app": "127.0.0.1:9"}).replace("@PORT@", "8080"))
    code, _, err = finished(stage, "check", "-c", path)
    assert code == 0 and "error" not in err


def test_check_warns_and_lets_pass(stage):
    path = stage.file("odd.yaml", """\
routes:
  - {path: {regex: '/.*'}, service: app}
  - {path: /api, service: app, timeouts: {tunnel: 1h}}
services: {app: '127.0.0.1:9', old: '127.0.0.1:10'}
defaults: {upgrade: off}
""")
    code, out, err = finished(stage, "check", "-c", path)
    assert code == 0 and "good" in out
    assert re.findall(r"odd\.yaml:(\d+:\d+): warning: ", err) == ["3:5", "3:43", "4:32"] and len(err.split("\n")) == 3


TEN = """\
listen: 127.0.0.1:99999
workers: many
routes:
  - {service: nosuch}
  - {path: noslash, service: app}
  - {path: /x}
  - {path: /y, redirect: {to: 'https://x.test/', status: 200}}
services:
  app: [not-an-address]
timeouts: {head: 5 parsecs, nosuch: 1s}
limits: {head: -1}
"""


def test_check_names_ten_errors_at_once(stage):
    path = stage.file("bad.yaml", TEN)
    code, _, err = finished(stage, "check", "-c", path)
    assert code == 2
    places = re.findall(r"bad\.yaml:(\d+):(\d+): ", err)
    assert [int(line) for line, _ in places] == [1, 2, 4, 5, 6, 7, 9, 10, 10, 11], err


def test_run_refuses_what_check_refuses(stage):
    code, _, err = finished(stage, "run", "-c", stage.file("bad.yaml", TEN))
    assert code == 2 and "bad.yaml:1:" in err and "ready" not in err


def test_a_typing_error_is_answered_with_the_nearest_word(stage):
    path = stage.file("typo.yaml", "listen: 127.0.0.1:8080\nroutes: [{servise: app}]\nservices: {app: [127.0.0.1:9]}\n")
    code, _, err = finished(stage, "check", "-c", path)
    assert code == 2 and "service" in err.replace("servise", "")


@pytest.mark.parametrize("text", ["", "[", "a: b: c", "\tx", "listen: [", "- 1", "\x00", "a: &a [*a]", "%"])
def test_no_text_is_too_odd_to_be_told(stage, text):
    code, _, err = finished(stage, "check", "-c", stage.file("odd.yaml", text))
    assert code == 2 and err


def test_an_unreadable_file_is_told(stage):
    code, _, err = finished(stage, "run", "-c", "/nonexistent/thimble.yaml")
    assert code in (1, 2) and "/nonexistent/thimble.yaml" in err and "No such file" in err


def test_a_port_in_use_is_1_and_names_it(stage):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    stage.clients.append(s)
    port = s.getsockname()[1]
    path = stage.file("t.yaml", config({"app": "127.0.0.1:9"}).replace("@PORT@", str(port)))
    code, _, err = finished(stage, "run", "-c", path)
    assert code == 1 and str(port) in err and "in use" in err


def test_too_few_open_files_is_1_and_says_how_many(stage):
    path = stage.file("t.yaml", config({"app": "127.0.0.1:9"}).replace("@PORT@", str(free_port())))
    code, _, err = finished(stage, "run", "-c", path, limits=[(resource.RLIMIT_NOFILE, 40)])
    assert code == 1 and "open files is 40" in err


def test_the_soft_limit_of_open_files_is_raised(stage):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    p = stage.proxy(stage.origin())
    with open("/proc/%d/limits" % p.pid) as f:
        soft = re.search(r"Max open files +(\d+)", f.read()).group(1)
    assert int(soft) == hard


def test_the_environment_in_a_file(stage):
    o = stage.origin()
    p = stage.text(config({"app": "${WHERE}"}), env={"WHERE": o.address})
    assert stage.client(p).get("/").status == 200


def test_run_to(stage):
    o = stage.origin()
    port = free_port()
    p = stage.start(["run", "--to", "http://" + o.address, "--listen", "127.0.0.1:%d" % port], port=port)
    assert "listening on 127.0.0.1:%d" % port in p.err.text()
    assert stage.client(p).get("/to").text() == "GET /to 0"


def test_run_alone_shows_itself(stage):
    """With nothing to go to, a small origin of its own answers with what it was asked."""
    port = free_port()
    p = stage.start(["run", "--listen", "127.0.0.1:%d" % port], port=port)
    a = stage.client(p).get("/hello?x=1", "X-Mine: yes")
    assert a.status == 200
    for word in ("GET", "/hello?x=1", "X-Mine", "yes", "X-Forwarded-For"):
        assert word in a.text()


def test_a_file_from_standard_input(stage):
    code, _, err = finished(stage, "check", "-c", "-", stdin=config({"app": "127.0.0.1:9"}).replace("@PORT@", "8080"))
    assert code == 0, err
