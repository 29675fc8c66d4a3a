"""`launch.benchmark --device=gpu`: its peers, the GPU's samples, its table and JSON; GPUs and peers are stand-ins."""

import contextlib
import json
import time

import pytest
from stand_ins import write_program

from launch import benchmark
from launch.benchmarks import workloads
from launch.benchmarks.cost import Cost, GpuSampler, Sample, Span, Times, compute_results, find_gpu, summarize
from launch.benchmarks.workloads import WORKLOADS, Peer, install_libraries, make_gpu_peers
from launch.runs.errors import RunStopped

WITH_PFL, WITHOUT_PFL = "fed_avg_mnist_student", "fed_sikd_digits"
NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *-i\\ 7*) echo "No devices were found"; exit 6 ;;
    *name,driver*) echo "NVIDIA X, 580.1, 81559 MiB" ;;
    *) echo "10, 500"; echo "[N/A], [N/A]"; echo "30, 700"; exec sleep 100 ;;
esac
"""


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts a stand-in of that name in front of others."""
    write_program(tmp_path / "bin" / "nvidia-smi", NVIDIA_SMI)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")


@pytest.fixture
def without_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))


def wait_for_samples(sampler):
    deadline_s = time.monotonic() + 10
    while len(sampler.samples) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.01)


@pytest.fixture
def rounds(monkeypatch):
    """Makes all peers stand-ins, sampled from the first round on; gives the names of those that have run a round."""
    names = []

    class Process(contextlib.nullcontext):
        def __init__(self, name, peer, workload, folder):
            super().__init__(self)
            self.name = name
            self.wait_until_ready = lambda: None

        def run_round(self):
            names.append(self.name)
            return Cost(1.0 + len(self.name), 1.0)

    class Sampler(GpuSampler):
        def __enter__(self):
            wait_for_samples(super().__enter__())
            return self

    monkeypatch.setattr(benchmark, "PeerProcess", Process)
    monkeypatch.setattr(benchmark, "GpuSampler", Sampler)
    monkeypatch.setattr(benchmark, "build_data", lambda workload, folder: None)
    monkeypatch.setattr(benchmark, "install_libraries", lambda report: None)
    monkeypatch.setattr(Peer, "explain_absence", lambda peer: None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return names


def test_samples_are_told_by_process_and_round():
    samples = [
        Sample(0.5, 90, 100),
        Sample(1.5, 20, 300),
        Sample(2.5, 40, 310),
        Sample(3.5, 60, 305),
        Sample(9, 0, 900),
        Sample(10.5, 70, 150),
        Sample(11.5, 100, 320),
    ]
    processes = [[Span(0, 1), Span(1, 2), Span(3, 4)], [Span(10, 11), Span(11, 12)]]
    assert summarize(samples, processes) == {
        "utilisation_percent": 60,  # of rounds 2 and 3 of the first process, and 2 of the other
        "memory_bytes": 320,
        "memory_growth_bytes": 5,
        "memory_by_round_bytes": [[100, 300, 305], [150, 320]],
    }


def test_the_gpu_is_sampled_in_the_background_and_the_program_ends_with_the_block(nvidia_smi):
    with GpuSampler("0") as sampler:
        run = sampler.watch("gpu", lambda: wait_for_samples(sampler) or Cost(1.0, 1.0))
        assert run() == run() == Cost(1.0, 1.0)
    assert [sample[1:] for sample in sampler.samples] == [(10, 500 * 2**20), (30, 700 * 2**20)]  # not what is "[N/A]"
    assert sampler._program.returncode is not None
    assert sampler.summarize()["gpu"]["memory_by_round_bytes"] == [[700 * 2**20] * 2]


def test_a_gpu_is_described_if_it_is_there(nvidia_smi):
    assert find_gpu("0") == {"name": "NVIDIA X", "driver": "580.1", "memory": "81559 MiB"}
    assert find_gpu("7") is None


def test_without_nvidia_smi_nothing_is_told(without_nvidia_smi):
    with GpuSampler("0") as sampler:
        pass
    assert sampler.samples == [] and find_gpu("0") is None
    told = {"utilisation_percent": None, "memory_bytes": None, "memory_growth_bytes": None}
    assert summarize([], [[Span(0, 1), Span(1, 2)]]) == {**told, "memory_by_round_bytes": [[None, None]]}


def test_peers_are_on_the_gpu_that_is_named_first_and_on_the_host(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    options = benchmark.parse_options(
        ["--device=gpu", "--clients_at_a_time=1,8", f"--workloads={WITH_PFL},{WITHOUT_PFL}"]
    )
    ours = ("gpu", "gpu_1", "gpu_8", "host")
    assert [workload.peers for workload in options.workloads] == [(*ours, "pfl_research"), ours]
    assert (options.gpu, options.processes, options.repeats) == ("2", 5, 15)
    peers = options.peers
    assert [peers[name].options["settings"]["device"] for name in ours] == ["gpu", "gpu", "gpu", "cpu"]
    assert [peers[name].options.get("clients_at_a_time") for name in ours] == [None, 1, 8, None]
    assert [peer.environment.get("CUDA_VISIBLE_DEVICES") for peer in peers.values()] == ["2", "2", "2", None, "2"]
    assert peers["pfl_research"].options == {"num_processes": 1, "device": "cuda"}


def test_a_miniature_asks_for_no_gpu():
    for peer in make_gpu_peers("0", [1], is_smoke=True).values():
        assert peer.options.get("device", "cpu") == "cpu"
        assert "CUDA_VISIBLE_DEVICES" not in peer.environment
        assert peer.options.get("settings", {}).get("device", "cpu") == "cpu"
        assert not peer.build


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "error: --device=gpu: nvidia-smi sees no GPU 0; --smoke does it in miniature on the CPU\n"),
        (["--peers=raw_loop"], "--peers=raw_loop: expected names, with commas between, of gpu, host, pfl_research\n"),
        (["--clients_at_a_time=1,0"], "--clients_at_a_time=1,0: expected numbers of at least 1"),
        (["--clients_at_a_time=many"], "--clients_at_a_time=many: expected numbers of at least 1"),
        (["--peers=pfl_research", f"--workloads={WITHOUT_PFL}"], f"none can run {WITHOUT_PFL}; its peers: gpu, host"),
        (["--before=."], "--before=.: expected --device=cpu"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(arguments, expected, without_nvidia_smi, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "run_workload", lambda *given: pytest.fail("it started all the same"))
    monkeypatch.setattr(benchmark, "install_libraries", lambda report: pytest.fail("it installed all the same"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert benchmark.main(["--device=gpu", *arguments]) == 2
    message = capsys.readouterr().err
    assert expected in message and message.count("\n") == 1


def test_json_has_the_gpu_its_use_and_ratios_to_it(rounds, nvidia_smi, tmp_path, capsys):
    output = tmp_path / "gpu.json"
    command = ["--device=gpu", "--clients_at_a_time=4", "--processes=2", "--repeats=2", f"--output={output}"]
    assert benchmark.main(command) == 0
    assert rounds == ["gpu", "gpu_4", "host", "pfl_research"] * 4
    content = json.loads(output.read_text())
    assert content["machine"]["gpu"] == {"name": "NVIDIA X", "driver": "580.1", "memory": "81559 MiB"}
    results = content["workloads"][WITH_PFL]
    assert results["ratio_to_gpu_4"] == 6 / 4 and results["ratio_to_host"] == 5 / 4
    assert results["gpu"]["host"]["memory_by_round_bytes"] == [[700 * 2**20] * 2] * 2
    assert "734 MB    +0 MB  this project, --device=gpu, clients at a time: 4" in capsys.readouterr().out


def test_table_shows_the_gpu_beside_the_rest():
    times = {"gpu": [Times(Cost(9, 9), [Cost(2, 1)])], "host": [Times(Cost(9, 9), [Cost(3, 1)])]}
    use = {"utilisation_percent": 41.6, "memory_bytes": 8.5e10, "memory_growth_bytes": -2e6}
    nothing = dict.fromkeys(use)
    results = {**compute_results(times, base="gpu"), "gpu": {"gpu": use, "host": nothing}}
    lines = benchmark.format_table(WORKLOADS[WITH_PFL], make_gpu_peers("0", [], False), results).splitlines()
    assert lines[1].endswith("   memory GPU busy GPU mem.   growth")
    assert lines[2].endswith("     0 MB     42 % 85000 MB    -2 MB  this project, --device=gpu")
    assert "     1.50     1.00 " in lines[3]
    assert lines[3].endswith(f"     0 MB{'':27}  this project, --device=cpu")


@pytest.mark.parametrize(("exit_code", "expected"), [(0, None), (1, "no such wheel")])
def test_libraries_are_installed_from_the_lock_once(exit_code, expected, monkeypatch):
    monkeypatch.setattr(workloads, "GPU_LIBRARY", "no-such-package")
    commands = []

    def run(command, **_):
        commands.append(command)
        return workloads.subprocess.CompletedProcess(command, exit_code, "", "pip says\nno such wheel\n")

    monkeypatch.setattr(workloads.subprocess, "run", run)
    if expected:
        with pytest.raises(RunStopped, match=f"requirements-gpu.lock could not be installed: {expected}"):
            install_libraries(print)
    else:
        install_libraries(print)
    assert commands[0][1:3] == ["-m", "pip"] and "--require-hashes" in commands[0]
    monkeypatch.setattr(workloads, "GPU_LIBRARY", "tensorflow")
    commands.clear()
    install_libraries(print)
    assert not commands


@pytest.mark.slow
def test_a_miniature_runs_on_the_cpu(without_nvidia_smi, tmp_path, monkeypatch):
    output = tmp_path / "gpu.json"
    command = ["--device=gpu", "--smoke", "--peers=gpu,gpu_2", "--clients_at_a_time=2", f"--output={output}"]
    assert benchmark.main(command) == 0
    content = json.loads(output.read_text())
    assert (content["machine"]["gpu"], content["machine"]["smoke"]) == (None, True)
    rounds_s = content["workloads"][WITH_PFL]["rounds_s"]
    assert list(rounds_s) == ["gpu", "gpu_2"] and all(len(each) == 2 for each in rounds_s.values())
