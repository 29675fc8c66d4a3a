"""The command behind `make bench-gpu`: parts, budget, what is kept, the GPU's samples; GPUs and peers are stand-ins."""

import contextlib
import json
import pathlib
import time

import pytest

from launch.benchmarks import gpu
from launch.benchmarks.cost import Cost
from launch.benchmarks.gpu_parts import Machine, list_parts
from launch.benchmarks.gpu_samples import GpuSampler, Sample, Span, find_gpu, summarize
from launch.benchmarks.peer_process import PeerError

NAMES = ["fed_avg", "char_lstm", "pfl_cifar10", "fed_avg_at_a_time", "char_lstm_at_a_time", "fed_sikd", "fed_cd"]
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
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


@pytest.fixture
def without_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def peers(monkeypatch):
    """Stand-ins for the peers, whose rounds take no time; a list of what ran, and a dictionary of what fails."""

    class Peer(contextlib.nullcontext):
        failing, rounds = set(), []

        def __init__(self, name, peer, workload, folder, deadline_s):
            super().__init__(self)
            self.name, self.workload = name, workload
            self.wait_until_ready = lambda: None
            pathlib.Path(folder, f"{name}.log").write_text("a line\nlast words\n")

        def run_round(self):
            if self.workload.name in Peer.failing:
                raise PeerError(f"{self.name}: no luck")
            Peer.rounds.append((self.workload.name, self.name))
            return Cost(1.0, 1.0)

    monkeypatch.setattr(gpu, "PeerProcess", Peer)
    monkeypatch.setattr(gpu, "build_data", lambda workload, folder: None)
    return Peer


def test_samples_are_told_by_round():
    samples = [
        Sample(0.5, 90, 100),
        Sample(1.5, 20, 300),
        Sample(2.5, 40, 310),
        Sample(3.5, 60, 305),
        Sample(9, 0, 900),
    ]
    assert summarize(samples, [Span(0, 1), Span(1, 2), Span(3, 4)]) == {
        "utilisation_percent": 40,  # of rounds 2 and 3
        "memory_mib": [100, 300, 305],
        "memory_growth_mib": 5,
    }


def test_without_samples_nothing_is_told():
    nothing = {"utilisation_percent": None, "memory_mib": [None, None], "memory_growth_mib": None}
    assert summarize([], [Span(0, 1), Span(1, 2)]) == nothing


def test_the_gpu_is_sampled_in_the_background_and_the_program_ends_with_the_block(nvidia_smi):
    with GpuSampler("0") as sampler:
        deadline = time.monotonic() + 10
        while len(sampler.samples) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [sample[1:] for sample in sampler.samples] == [(10, 500), (30, 700)]  # what is not told is left out
    assert sampler._program.returncode is not None


def test_where_there_is_no_nvidia_smi_there_are_no_samples(without_nvidia_smi):
    with GpuSampler("0") as sampler:
        pass
    assert sampler.samples == []
    assert find_gpu("0") is None


def test_a_gpu_is_described_if_it_is_there(nvidia_smi):
    assert find_gpu("0") == {"name": "NVIDIA X", "driver": "580.1", "memory": "81559 MiB"}
    assert find_gpu("7") is None


def test_parts_are_full_size_on_the_gpu_and_on_the_host(tmp_path):
    parts = list_parts(Machine("2"), [1, 8], 5, 30)
    assert list(parts) == NAMES
    fed_avg = parts["fed_avg"].peers
    assert [peer.options["settings"]["device"] for peer in fed_avg.values()] == ["gpu", "cpu"]
    assert [peer.environment.get("CUDA_VISIBLE_DEVICES") for peer in fed_avg.values()] == ["2", None]
    widths = {name: peer.options["clients_at_a_time"] for name, peer in parts["char_lstm_at_a_time"].peers.items()}
    assert widths == {"gpu_1": 1, "gpu_8": 8}
    pfl = parts["pfl_cifar10"]
    config = pfl.workload.build_config(str(tmp_path))
    assert (config.num_clients, config.algorithm.cohort_size, config.batch_size, pfl.repeats) == (1000, 50, 10, 30)
    assert pfl.peers["pfl_research"].options == {"num_processes": 1, "device": "cuda"}
    assert parts["fed_cd"].workload.build_config(str(tmp_path)).train_per_client == 5000
    assert parts["fed_sikd"].workload.build_config(str(tmp_path)).num_clients == 40


def test_a_miniature_asks_for_no_gpu(tmp_path):
    for part in list_parts(Machine("0", is_smoke=True), [1], 5, 30).values():
        assert part.workload.build_config(str(tmp_path)).smoke
        for peer in part.peers.values():
            assert peer.options.get("device", "cpu") == "cpu"
            assert "CUDA_VISIBLE_DEVICES" not in peer.environment
            assert peer.options.get("settings", {}).get("device", "cpu") == "cpu"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "error: no GPU 0 is seen by nvidia-smi; --smoke runs all of it in miniature on the CPU\n"),
        (
            ["--smoke", "--parts=nope"],
            f"error: --parts=nope: expected names, with commas between, of {', '.join(NAMES)}",
        ),
        (["--smoke", "--clients_at_a_time=1,0"], "--clients_at_a_time=1,0: expected numbers of at least 1"),
        (["--smoke", "--repeats=0"], "--repeats=0"),
        (["--smoke", f"--output={__file__}"], "expected results of this command"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(arguments, expected, without_nvidia_smi, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "run_part", lambda *given: pytest.fail("it started all the same"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu.main(arguments) == 2
    message = capsys.readouterr().err
    assert expected in message and message.count("\n") == 1


def test_parts_are_written_one_after_another_and_not_measured_again(peers, without_nvidia_smi, tmp_path, capsys):
    output = tmp_path / "gpu.json"
    peers.failing.add("fed_avg_shakespeare_cohort")
    command = ["--smoke", "--parts=fed_avg,char_lstm", "--repeats=1", f"--output={output}"]
    assert gpu.main(command) == 1
    parts = json.loads(output.read_text())["parts"]
    assert parts["fed_avg"]["rounds_s"] == {"gpu": [1.0], "host": [1.0]}
    logs = {f"{name}.log": ["a line", "last words"] for name in ("gpu", "host")}
    assert parts["char_lstm"] == {"failed": "gpu: no luck", "rounds_until_then_s": {}, "logs": logs}
    peers.failing.clear()
    peers.rounds.clear()
    assert gpu.main(command) == 0
    assert peers.rounds == [("fed_avg_shakespeare_cohort", name) for name in ("gpu", "host")] * 2
    assert "ratio_to_host" in json.loads(output.read_text())["parts"]["char_lstm"]
    assert "GPU busy" in capsys.readouterr().out


def test_results_of_another_machine_are_not_gone_on_with(peers, nvidia_smi, tmp_path, capsys):
    output = tmp_path / "gpu.json"
    assert gpu.main(["--smoke", "--parts=fed_avg", f"--output={output}"]) == 0
    assert gpu.main(["--parts=fed_avg", f"--output={output}"]) == 2
    assert "has results of another machine" in capsys.readouterr().err


def test_when_the_budget_is_spent_parts_are_skipped(peers, without_nvidia_smi, tmp_path):
    output = tmp_path / "gpu.json"
    assert gpu.main(["--smoke", "--parts=fed_avg", "--budget_s=1", f"--output={output}"]) == 0
    assert json.loads(output.read_text())["parts"] == {"fed_avg": {"skipped": "the budget was spent"}}
    assert not peers.rounds


@pytest.mark.parametrize(("exit_code", "expected"), [(0, None), (1, "no such wheel")])
def test_libraries_are_installed_from_the_lock_once(exit_code, expected, monkeypatch):
    monkeypatch.setattr(gpu, "GPU_LIBRARY", "no-such-package")
    commands = []

    def run(command, **_):
        commands.append(command)
        return gpu.subprocess.CompletedProcess(command, exit_code, "", "pip says\nno such wheel\n")

    monkeypatch.setattr(gpu.subprocess, "run", run)
    if expected:
        with pytest.raises(gpu.RunStopped, match=f"requirements-gpu.lock could not be installed: {expected}"):
            gpu._install(print)
    else:
        gpu._install(print)
    assert commands[0][1:3] == ["-m", "pip"] and "--require-hashes" in commands[0]
    monkeypatch.setattr(gpu, "GPU_LIBRARY", "tensorflow")
    commands.clear()
    gpu._install(print)
    assert not commands


@pytest.mark.slow
def test_a_miniature_of_a_part_runs_on_the_cpu(without_nvidia_smi, tmp_path):
    output = tmp_path / "gpu.json"
    command = ["--smoke", "--parts=fed_avg_at_a_time", "--clients_at_a_time=1,2", "--repeats=1", f"--output={output}"]
    assert gpu.main(command) == 0
    rounds_s = json.loads(output.read_text())["parts"]["fed_avg_at_a_time"]["rounds_s"]
    assert list(rounds_s) == ["gpu_1", "gpu_2"] and all(len(each) == 1 for each in rounds_s.values())
