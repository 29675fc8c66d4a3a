"""Private updates: what it costs FedAvg on MNIST to hide each of 1,000 clients; our setting, which follows no paper.

Expected: no paper prints these numbers. Ours are in docs/results/private_results.csv: accuracy rises with epsilon.
Cost on two cores: 0.3 minutes of training a run; the 15 kept runs took 5 minutes.
Command: `python -m launch.sweep --experiments='private/*' --seeds=0-2 --finished=docs/results/private.zip`.
"""

from launch.settings.experiments import Block, Experiment, make_experiment, ours

BY_CHANCE = "each client comes by chance, a tenth of them on average, and all weigh alike, as private updates need it"
MANY = "many clients, so that noise which hides one of them is small beside the sum of a cohort"
PERCEPTRON = "A perceptron of two hidden layers of 64, since noise falls on every weight."
SGD = {"batch_size": 10, "epochs": 2, "optimizer": "sgd", "learning_rate": 0.1}
LENGTH = {"rounds": 40, "rounds_per_evaluation": 5, "rounds_per_checkpoint": 10}
SHARED = (
    ours(BY_CHANCE, cohort_size=100, participation="bernoulli", client_weighting="equal"),
    ours(MANY, PERCEPTRON, algo="fedavg", dataset="mnist", num_clients=1000, partition="iid", model="perceptron"),
    ours("plain SGD at a common rate, chosen before any run and not tuned", **SGD, **LENGTH),
)
NOISE = "the noise follows from the budget, the rounds and the sampling"
NORM = "The clip norm was chosen before any run and not tuned; tuning it on the clients' data would cost privacy, too."


def make_row(budget: str, updates: str, privacy: Block = ()) -> Experiment:
    """FedAvg with such updates."""
    about = f"Table and figure of private updates: FedAvg on MNIST, 1,000 clients of 50 examples, {updates}."
    nothing = "nothing; the setting follows no paper's table."
    return make_experiment(f"fedavg_mnist_1000clients_budget{budget}", about, *SHARED, privacy, printed=nothing)


EXPERIMENTS = [make_row("_none", "without privacy, the upper end")]
for epsilon in (1, 2, 4, 8):
    noise = ours(NOISE, NORM, dp_delta=1e-5, dp_clip_norm=0.5, dp_epsilon=epsilon, dp_accountant="rdp")
    EXPERIMENTS.append(make_row(f"{epsilon}", f"private updates, epsilon {epsilon} at delta 1e-5", noise))
