"""Flagfiles resolve without TensorFlow, differ only where they should, and run."""

import csv
import pathlib
import re
import subprocess
import sys
from collections import Counter

import pytest
from absl import flags as absl_flags

from launch.papers.engine.provenance import Origin, list_trials, read_provenance
from launch.papers.registry import PAPERS
from launch.runs.run_records import find_flagfile, list_flagfiles, resolve_flagfile
from launch.settings.run_config import flag_values

ROOT = pathlib.Path(__file__).parents[3]
PRINTED = ROOT / "launch" / "reports" / "fedsikd"
FLAGFILES = list_flagfiles()
ALGORITHMS = {"fedsikd": "FedSiKD", "random_cluster": "RandomCluster", "fl_hc": "FL+HC", "fedavg": "FedAvg"}
ALPHAS = ("0.1", "0.5", "1.0", "2.0")
ROUNDS = {"mnist": 70, "har": 50}
EPOCHS = {"mnist": (6, 10), "har": (3, 7)}  # student, teacher
AUTHORS_CODE = {  # of the papers whose authors published any; the runs of quantization are FedSiKD's
    "fedsikd": "github.com/SimuEnv/FedSiKD, commit 7e47aa4",
    "quantization": "github.com/SimuEnv/FedSiKD, commit 7e47aa4",
    "fedcd": "github.com/jessijzhao/FedCD, commit cea256a",
}
PROTOCOLS = {  # of others, which no report is about yet
    "ifca": "github.com/jichan3751/ifca/mnist, commit 97db9d1",
    "niid_bench": "github.com/adap/flower/baselines/niid_bench, commit 09d72eb",
}
CELLS = [(algo, dataset, alpha) for algo in ALGORITHMS for dataset in ROUNDS for alpha in ALPHAS]

RUN_ALL = """
import sys
from launch.train import main
failed = [path for path in sys.argv[1:] if main([f"--flagfile={path}", "--smoke"]) != 0]
sys.exit(f"failed: {failed}" if failed else 0)
"""
RESOLVE_ALL = """
import sys
from launch.runs.run_records import find_flagfile, list_flagfiles, resolve_flagfile
for path in sys.argv[1:]:
    resolve_flagfile(path)
loaded = {"tensorflow", "tensorflow_federated", "sklearn", "matplotlib"} & sys.modules.keys()
sys.exit(f"imported: {loaded}" if loaded else 0)
"""


def stem_of(algo, dataset, alpha):
    return f"{algo}_{dataset}_alpha{alpha}"


def resolve_stem(stem):
    return flag_values(resolve_flagfile(find_flagfile(stem)))


def resolve(algo, dataset, alpha):
    return resolve_stem(stem_of(algo, dataset, alpha))


def expected_own_flags(algo, dataset):
    """What a flagfile must set besides the shared flags."""
    student, teacher = EPOCHS[dataset]
    if algo in ("fedavg", "fl_hc"):
        values = {"epochs": student, "optimizer": "adam", "learning_rate": 1e-3, "client_weighting": "examples"}
        return values | ({"clustering_round": 1, "distance_multiple": 1.2} if algo == "fl_hc" else {})
    training = {"optimizer": "adam", "learning_rate": 1e-3}
    return (
        {f"student_{name}": value for name, value in {"epochs": student, **training}.items()}
        | {f"teacher_{name}": value for name, value in {"epochs": teacher, **training}.items()}
        | {"num_clusters": 4, "teacher": "leader", "label_weight": 0.5, "temperature": 3.0, "weighting": "equal"}
        | {"statistics": "scalar"}
        | ({"cluster_sizes": "kmeans"} if algo == "random_cluster" else {"distillation_inputs": "logits"})
    )


def run_python(code, paths, timeout_s):
    command = [sys.executable, "-c", code, *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, cwd=ROOT)


def test_all_resolve_without_tensorflow():
    run = run_python(RESOLVE_ALL, FLAGFILES, 60)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("path", FLAGFILES, ids=lambda path: path.stem)
def test_it_lies_in_the_folder_of_its_paper_under_a_name_of_its_own(path):
    folders = {"async": "async_periodic"}
    reported = [folders.get(name, name) for name, paper in PAPERS.items() if paper.covers(path.stem)]
    assert reported == ([] if path.parent.name in PROTOCOLS else [path.parent.name])
    assert [each for each in FLAGFILES if each.stem == path.stem] == [path]


def test_every_cell_of_the_tables_has_its_file():
    assert {stem_of(*cell) for cell in CELLS} <= {path.stem for path in FLAGFILES}


@pytest.mark.parametrize(("algo", "dataset", "alpha"), CELLS)
def test_a_cell_asks_for_what_the_paper_prints_and_we_chose(algo, dataset, alpha):
    values = resolve(algo, dataset, alpha)
    shared = {
        "algo": algo,
        "dataset": dataset,
        "num_clients": 40,
        "partition": "dirichlet",
        "dirichlet_alpha": float(alpha),
        "batch_size": 64,
        "rounds": ROUNDS[dataset],
        "har_features": "statistics",
    }
    own = {f"{algo}_{name}": value for name, value in expected_own_flags(algo, dataset).items()}
    assert {name: values[name] for name in (shared | own)} == shared | own


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("dataset", ROUNDS)
def test_cells_of_a_row_differ_only_in_alpha(algo, dataset):
    first, *others = (resolve(algo, dataset, alpha) for alpha in ALPHAS)
    for other in others:
        assert {name for name in first if first[name] != other[name]} == {"dirichlet_alpha"}


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_values_of_the_authors_code_differ_in_the_distillation_alone(alpha):
    printed, theirs = (resolve_stem(f"fedsikd_mnist_alpha{alpha}{suffix}") for suffix in ("", "_authors"))
    distillation = {"label_weight": 0.1, "temperature": 3.0, "distillation_inputs": "probabilities"}
    assert theirs == printed | {f"fedsikd_{name}": value for name, value in distillation.items()}


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("alpha", ALPHAS[:2])
def test_windows_differ_from_features_in_the_input_alone(algo, alpha):
    windows = resolve_stem(f"{algo}_har_windows_alpha{alpha}")
    assert windows == resolve(algo, "har", alpha) | {"har_features": "inertial"}


@pytest.mark.parametrize("dataset", ROUNDS)
def test_algorithms_of_a_column_share_data_and_student_training(dataset):
    of_algo = {algo: resolve(algo, dataset, "0.1") for algo in ALGORITHMS}
    shared = set.intersection(*(set(values) for values in of_algo.values())) - {"algo"}
    assert len(shared) > 10
    for name in shared:
        assert len({str(values[name]) for values in of_algo.values()}) == 1, name
    prefixes = {"fedsikd": "fedsikd_student_", "random_cluster": "random_cluster_student_"}
    training = [
        {
            name.removeprefix(prefix): value
            for name, value in of_algo[algo].items()
            if name.startswith(prefix := prefixes.get(algo, f"{algo}_"))
        }
        for algo in ALGORITHMS
    ]
    for name in training[0]:
        assert len({values[name] for values in training}) == 1, name


@pytest.mark.parametrize(("algo", "dataset", "alpha"), CELLS)
def test_the_header_holds_the_printed_values(algo, dataset, alpha):
    header = find_flagfile(stem_of(algo, dataset, alpha)).read_text(encoding="utf-8").split("\n\n", 1)[0]
    printed = {}
    for path in PRINTED.glob("table*.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if (row["algorithm"], row["dataset"], row["dirichlet_alpha"]) == (ALGORITHMS[algo], dataset, alpha):
                    printed[int(row["round"]), row["metric"]] = float(row["value"])
    last = ROUNDS[dataset]
    assert f"test accuracy {100 * printed[5, 'test_accuracy']:.2f} % at round 5" in header
    assert f"test loss {printed[1, 'test_loss']:.2f} at round 1" in header
    assert f"{printed[last, 'test_loss']:.2f} at round {last}" in header


@pytest.mark.parametrize("path", FLAGFILES, ids=lambda path: path.stem)
def test_the_header_names_its_table_our_values_and_the_cost(path):
    header = path.read_text(encoding="utf-8").split("\n\n", 1)[0]
    assert re.search(r"^# .*(Table|Figure)", header, re.MULTILINE)
    assert re.search(r"^# Ours: .+", header, re.MULTILINE)
    assert re.search(r"^# Cost: .+", header, re.MULTILINE)


@pytest.mark.parametrize("path", FLAGFILES, ids=lambda path: path.stem)
def test_every_flag_stands_under_its_origin(path):
    settings = read_provenance(path)
    [*arguments] = absl_flags.FlagValues().read_flags_from_files([f"--flagfile={path}"])
    assert Counter(arguments) == Counter(
        f"--{each.flag}" if f"--{each.flag}" in arguments else f"--{each.flag}={each.value}" for each in settings
    )
    repositories = {each.source for each in settings if each.origin is Origin.AUTHORS_CODE}
    published = {code for paper, code in AUTHORS_CODE.items() if PAPERS[paper].covers(path.stem)}
    assert repositories <= published | {PROTOCOLS.get(path.parent.name)}
    trials = [name for each in settings for name in list_trials(f"{each.source} {each.note}")]
    assert [name for name in trials if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    "path", [path for path in FLAGFILES if path.stem.endswith("_quantization")], ids=lambda path: path.stem
)
def test_the_quantized_fedsikd_clusters_and_distils_and_trains_as_long_as_fedavg(path):
    values = flag_values(resolve_flagfile(path))
    if values["algo"] != "fedsikd":
        pytest.skip("only FedSiKD is held to this")
    assert values["fedsikd_num_clusters"] != 1
    assert values["fedsikd_label_weight"] <= 0.8
    fedavg = resolve("fedavg", values["dataset"], values["dirichlet_alpha"])
    for name in ("epochs", "steps", "optimizer", "learning_rate", "momentum"):
        assert values[f"fedsikd_student_{name}"] == fedavg[f"fedavg_{name}"], name
    shared = values.keys() & fedavg.keys() - {"algo", "rounds"}
    assert {name for name in shared if values[name] != fedavg[name]} == set()


TUNED = [path for path in FLAGFILES if re.fullmatch(r".*_mnist_alpha[\d.]+_(tuned.*|control)", path.stem)]


def find_best_trial(path):
    """The settings of the best trial in the table that a flagfile names, and the flagfile of its search."""
    notes = [f"{each.source} {each.note}" for each in read_provenance(path)]
    [table] = {name for note in notes for name in list_trials(note)}
    with open(ROOT / table, newline="", encoding="utf-8") as file:
        trials = list(csv.DictReader(file))
    best = max(trials, key=lambda trial: float(trial["mean"]))
    algo = pathlib.Path(table).stem.split("_mnist_")[0]
    return {name.removeprefix(f"{algo}_"): value for name, value in best.items() if name.startswith(algo)}


@pytest.mark.parametrize("path", TUNED, ids=lambda path: path.stem)
def test_tuned_settings_are_those_of_the_best_trial(path):
    arguments = absl_flags.FlagValues().read_flags_from_files([f"--flagfile={path}"])
    own = dict(each.removeprefix("--").split("=", 1) for each in arguments)
    differing = [
        name for name, value in find_best_trial(path).items() if own.get(f"{own['algo']}_{name}") not in (value, None)
    ]
    missing = [name for name in find_best_trial(path) if f"{own['algo']}_{name}" not in own]
    assert len(differing) == ("_tuned_" in path.stem), differing  # an ablation changes one setting
    assert missing == []
    if path.stem.endswith("_control"):
        assert own["random_cluster_cluster_sizes"] == "kmeans"


def test_the_tuned_runs_of_a_cell_differ_in_the_algorithm_and_its_settings_alone():
    cells = {}
    for path in TUNED:
        values = flag_values(resolve_flagfile(path))
        shared = {name: values[name] for name in ("dataset", "num_clients", "partition", "batch_size", "model")}
        cells.setdefault(values["dirichlet_alpha"], []).append(shared)
    assert cells
    assert [cell for cell, runs in cells.items() if any(run != runs[0] for run in runs)] == []


@pytest.mark.parametrize("path", [path for path in FLAGFILES if path.stem.endswith("_qat")], ids=lambda path: path.stem)
def test_a_quantized_run_differs_from_its_twin_in_quantization_alone(path):
    twin = path.with_name(path.name.replace("_qat", ""))
    rounds = flag_values(resolve_flagfile(path))["rounds"]
    expected = flag_values(resolve_flagfile(twin, [f"--rounds={rounds}"])) | {"quantize": "qat"}
    assert flag_values(resolve_flagfile(path)) == expected


ASYNC_WEIGHTINGS = {"equal": ("equal", 1.0), "fresh": ("age_aware", 0.5), "old": ("age_aware", 2.0)}
ASYNC_CASES = ("iid", "shards")


@pytest.mark.parametrize("case", ASYNC_CASES)
@pytest.mark.parametrize("policy", ["random", "significance", "frequency"])
def test_asynchronous_runs_differ_only_in_data_policy_weights_and_waiting(case, policy):
    first = resolve_stem("async_periodic_mnist_iid_random_equal")
    assert (first["num_clients"], first["rounds"], first["async_periodic_max_scheduled"]) == (100, 40, 30)
    assert (first["async_periodic_waiting"], first["async_periodic_period_fraction"]) == ("periodic", 0.25)
    shared = first | {"partition": case, "async_periodic_scheduling": policy}
    for kind, (weighting, gamma) in ASYNC_WEIGHTINGS.items():
        expected = shared | {"async_periodic_weighting": weighting, "async_periodic_gamma": gamma}
        assert resolve_stem(f"async_periodic_mnist_{case}_{policy}_{kind}") == expected
    expected = shared | {"async_periodic_waiting": "synchronous"}
    assert resolve_stem(f"async_periodic_mnist_{case}_{policy}_synchronous") == expected
    expected |= {"async_periodic_proximal_weight": 0.0}  # section II-A, where Eq. (8) is not in the loss
    assert resolve_stem(f"async_periodic_mnist_{case}_{policy}_synchronous_plain") == expected


@pytest.mark.parametrize("kind", ASYNC_WEIGHTINGS)
def test_runs_with_slow_devices_that_hold_digits_of_their_own_differ_only_in_speed(kind):
    expected = resolve_stem(f"async_periodic_mnist_shards_random_{kind}") | {"async_periodic_speed": "by_label"}
    assert resolve_stem(f"async_periodic_mnist_persistent_random_{kind}") == expected


@pytest.mark.parametrize("gamma", [1.25, 1.5])
def test_older_updates_are_favoured_by_other_bases_where_slow_devices_hold_digits_of_their_own(gamma):
    expected = resolve_stem("async_periodic_mnist_persistent_random_old") | {"async_periodic_gamma": gamma}
    assert resolve_stem(f"async_periodic_mnist_persistent_random_old{gamma:g}") == expected


def test_the_learning_rates_of_asynchronous_runs_are_the_printed_ones():
    config = resolve_flagfile(find_flagfile("async_periodic_mnist_iid_random_equal"))
    rates = [config.algorithm.training.round_learning_rate(index) for index in (1, 20, 21, 40)]
    assert rates == [0.01, 0.01, 0.005, 0.005]


@pytest.mark.parametrize("case", ASYNC_CASES)
@pytest.mark.parametrize("algo", ["fed_async", "buffered"])
def test_servers_that_never_wait_train_as_the_periodic_one(algo, case):
    periodic, other = resolve_stem(f"async_periodic_mnist_{case}_random_equal"), resolve_stem(f"{algo}_mnist_{case}")
    shared = periodic.keys() & other.keys() - {"algo", "rounds"}
    assert {name for name in shared if periodic[name] != other[name]} == set()
    for name in ("steps", "optimizer", "learning_rate", "learning_rate_decay", "proximal_weight", "speed"):
        assert other[f"{algo}_{name}"] == periodic[f"async_periodic_{name}"], name


def list_representatives():
    """Flagfiles that have every algorithm, and every data set's input with its model, at least once."""
    chosen, seen = [], set()
    for path in FLAGFILES:
        values = flag_values(resolve_flagfile(path))
        has = {values["algo"], tuple(values[name] for name in ("dataset", "har_features", "model"))}
        if not has <= seen:
            chosen.append(path)
            seen |= has
    return chosen


def test_every_algorithm_and_every_model_runs():
    run = run_python(RUN_ALL, list_representatives(), 900)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]


@pytest.mark.slow
def test_the_rest_run():
    run = run_python(RUN_ALL, sorted(set(FLAGFILES) - set(list_representatives())), 3600)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
