"""FedSiKD: clients in clusters by the statistics of their data, and a teacher distilled into students in each cluster.

The paper: "FedSiKD: Clients Similarity and Knowledge Distillation: Addressing Non-i.i.d. and Constraints in Federated
Learning". Before the first round, each client shares statistics of its data (Eq. 1) and the server clusters the clients
by them with k-means (Eq. 2). A round:
1. The teacher of each cluster is trained: by the cluster's leader alone, or by all members, federated.
2. The teacher is sent to the members, and each computes its logits on its own examples, once.
3. Each client trains the global student on `w * CE + (1 - w) * KL(teacher / T || student / T)`.
4. The students are averaged in each cluster, then over the clusters; that is the next global student.

| paper | here |
|---|---|
| mu_i, sigma_i, gamma_i (Eq. 1) | `ServerState.statistics` |
| C_k, K (Eq. 2) | `ServerState.assignments`, number of rows of `ServerState.teachers` |
| theta_T,k | `ServerState.teachers` |
| theta_S, w_global | `ServerState.student` |
| sigma_k^2, sigma^2 (Theorem 1) | `within_cluster_drift`, `total_drift` of the updates, in the metrics |

RandomCluster, a baseline of the paper, is the same process with `clustering="random"`: clusters of the sizes that
k-means finds, whose members are drawn at random, or clusters of equal sizes. Limit case: one cluster, a
`label_weight` of 1 and weighting by examples is FedAvg.

Deviations from the paper:
- A cluster's teacher is kept from round to round. The paper starts it from the global weights each round, which works
  only if teacher and student share one architecture; by its own tables they do not.
- All teachers start alike. Sending them to the members is counted in the byte ledger; a leader has its own already.
- The paper names neither optimizer nor epochs, temperature, loss weight or k; the flagfiles say where ours come from.
- The distillation has no factor T^2 by default, and works on logits (the paper's layers end with a softmax).
- The statistics are standardised over clients before k-means, which the paper does not mention. Without it the skewness
  alone would decide.
- The paper asks for differential privacy but leaves open how; `privacy_epsilon` turns it on (see `privacy.py`). The
  leaders and the weights by examples then depend on the noisy sizes that the clients released. Virtual time does not:
  it simulates devices, which train on what they have. `privacy.epsilon` adds noise to the updates as well (see
  `private_round.py`), and is the budget of both together.
- The paper's leaders collect models and send teachers themselves. Here everything goes through the server and is
  counted accordingly. A leader trains a student as well, like every other client.
- k is fixed by default, so that runs can be compared; the paper chooses it by the indices (`num_clusters=0`).
- The exchange of the statistics counts in the bytes of the first round, but takes no virtual time.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import ClientInput, build_client_inputs
from tff_algos.fed_sikd.clustering import choose_leaders, cluster_at_random, cluster_by_statistics, draw_members
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.costs import RoundCosts, compute_round_costs
from tff_algos.fed_sikd.private_round import (
    STUDENTS,
    TEACHERS,
    build_fed_sikd_private_sum,
    step_student,
    step_teachers,
)
from tff_algos.fed_sikd.sharing import (
    StatisticsSharing,
    build_statistics_sharing,
    take_noisy_sizes,
    take_statistics,
)
from tff_algos.fed_sikd.statistics import project_to_plane, standardize
from tff_algos.fed_sikd.student_round import StudentRoundTotals, build_private_student_sums, build_student_round
from tff_algos.protocol import (
    CLUSTER,
    NUM_REJECTED,
    PLANE_X,
    PLANE_Y,
    TOTAL_DRIFT,
    WITHIN_CLUSTER_DRIFT,
    ClientWork,
    RoundOutput,
    Weights,
)
from tff_algos.rounds.cluster_labels import count_clusters
from tff_algos.rounds.grouped_round import build_grouped_round
from tff_algos.rounds.private_aggregation import PrivacyState, PrivateProcess, build_private_sums, check_private_model
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.settings.compression import CompressionConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import check_delta
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.weights import initialize_weights, stack_models, take_model

INDEX_NAMES = ("silhouette", "calinski_harabasz", "davies_bouldin")


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      student: the global student.
      teachers: the clusters' teachers, stacked along axis 0; of no rows if `label_weight` is 1.
      assignments: the cluster of each client, int32, shape (clients,).
      shared: what the clients shared (see `sharing`), float64, shape (clients, columns); no columns if nothing depends
        on it.
      indices: silhouette, Calinski-Harabasz and Davies-Bouldin index of the clustering, float64; NaN if undefined.
      privacy: of private updates; empty without.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    student: Weights
    teachers: Weights
    assignments: np.ndarray
    shared: np.ndarray
    indices: np.ndarray
    privacy: PrivacyState | tuple[()] = ()

    @property
    def statistics(self) -> np.ndarray:
        """The clients' statistics, shape (clients, columns)."""
        return take_statistics(self.shared)

    @property
    def noisy_sizes(self) -> np.ndarray | None:
        """The clients' numbers of examples as they released them, shape (clients,); None without privacy."""
        return take_noisy_sizes(self.shared)


@dataclasses.dataclass(frozen=True, eq=False)
class FedSiKDProcess(PrivateProcess):
    """FedSiKD; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_fed_sikd_process`.
      initial_student: the global student before the first round.
      initial_teacher: every cluster's teacher before the first round; empty in a run without teachers.
      sharing: how the statistics are collected; None if nothing depends on them.
      build_student_round: (number of clusters) -> the computation of steps 2 to 4, cached; of 2 and 3 if updates are
        private.
      build_teacher_round: (number of clusters) -> the computation of step 1, cached.
    """

    clients: FederatedData
    config: FedSiKDConfig
    seed: int
    initial_student: Weights
    initial_teacher: Weights
    sharing: StatisticsSharing | None
    build_student_round: Callable[[int], Callable]
    build_teacher_round: Callable[[int], Callable]

    @property
    def everyone(self) -> np.ndarray:
        return np.arange(len(self.clients.clients))

    def initialize(self) -> ServerState:
        """Collects the statistics and clusters the clients; all teachers start alike."""
        num_clients, config = len(self.everyone), self.config
        if self.sharing is None:
            shared = np.zeros((num_clients, 0))
            clustering = cluster_at_random(num_clients, config.num_clusters, self.seed)
        else:
            shared = self.sharing.collect()
            clustering = cluster_by_statistics(
                standardize(take_statistics(shared)), config.num_clusters, config.max_clusters, self.seed
            )
            if config.clustering == "random":
                clustering = draw_members(clustering, self.seed)
        assignments, indices = clustering.assignments, [getattr(clustering, name) for name in INDEX_NAMES]
        teachers = stack_models([self.initial_teacher] * count_clusters(assignments))
        indices, privacy = np.asarray(indices, np.float64), self.private_sum.initialize() if self.private_sum else ()
        return ServerState(
            np.int32(0), np.float64(0.0), self.initial_student, teachers, assignments, shared, indices, privacy
        )

    def choose_trainers(self, state: ServerState) -> np.ndarray:
        """The clients that train a teacher, ascending: the leaders, all clients, or none if there is no teacher."""
        if not self.initial_teacher:
            return self.everyone[:0]
        if self.config.teacher == "cluster":
            return self.everyone
        speeds, noisy = self.clients.profiles.examples_per_s, state.noisy_sizes
        sizes = self.clients.num_train if noisy is None else noisy
        return np.sort(choose_leaders(state.assignments, sizes, speeds, self.config.leader))

    def build_inputs(
        self, state: ServerState, indices: np.ndarray, purpose: str, training: LocalTrainingConfig
    ) -> list[ClientInput]:
        groups, weighting, round_num = state.assignments[indices], self.config.weighting, int(state.round_num) + 1
        inputs = build_client_inputs(self.clients, indices, groups, weighting, training, self.seed, purpose, round_num)
        noisy = state.noisy_sizes
        if weighting == "examples" and noisy is not None:  # exact weights would tell the sizes that the noise hides
            for place, size in enumerate(noisy[indices]):
                inputs[place] = inputs[place]._replace(weight=np.float32(size))
        return inputs

    def train_teachers(self, state: ServerState, trainers: np.ndarray) -> tuple[ServerState, int]:
        """Step 1 of the round: the state with the new teachers, and how many updates were rejected."""
        if not self.initial_teacher:
            return state, 0
        inputs = self.build_inputs(state, trainers, "teacher training", self.config.teacher_training)
        run_round = self.build_teacher_round(count_clusters(state.assignments))
        if self.private_sum is None:
            teachers, totals = run_round(state.teachers, inputs)
            return state._replace(teachers=tuple(teachers)), int(totals.num_rejected)
        sums, counts, totals = run_round(state.teachers, state.privacy.clip_norms[TEACHERS], inputs)
        sizes, round_num = np.bincount(state.assignments), int(state.round_num) + 1
        teachers, privacy = step_teachers(
            self.private_sum, state.teachers, sums, counts, sizes, state.privacy, round_num
        )
        return state._replace(teachers=teachers, privacy=privacy), int(totals.num_rejected)

    def train_students(self, state: ServerState) -> tuple[ServerState, StudentRoundTotals, dict[str, float]]:
        """Steps 2 to 4: the state with the new student, the round's scalars, and the metrics of privacy."""
        inputs = self.build_inputs(state, self.everyone, "training", self.config.student)
        run_round, models = self.build_student_round(count_clusters(state.assignments)), (state.student, state.teachers)
        if self.private_sum is None:
            student, result = run_round(models, inputs)
            return state._replace(student=tuple(map(np.asarray, student))), result, {}
        sums, counts, result = run_round(models, state.privacy.clip_norms[STUDENTS], inputs)
        sizes, round_num = np.bincount(state.assignments), int(state.round_num) + 1
        student, privacy = step_student(self.private_sum, state.student, sums, counts, sizes, state.privacy, round_num)
        metrics = self.private_sum.build_metrics(privacy, round_num, counts)
        return state._replace(student=student, privacy=privacy), result, metrics

    def next(self, state: ServerState) -> RoundOutput:
        num_clusters = count_clusters(state.assignments)
        # Step 1
        trainers = self.choose_trainers(state)
        trained, num_rejected_teachers = self.train_teachers(state, trainers)
        # Steps 2 to 4
        trained, result, spent = self.train_students(trained)
        costs, shared_bytes = self.compute_costs(state, trainers), self.count_shared_bytes(state)
        virtual_time_s = state.virtual_time_s + costs.seconds
        metrics = build_common_metrics(
            result.totals, virtual_time_s, len(self.everyone), costs.bytes_down, costs.bytes_up + shared_bytes
        )
        metrics[NUM_REJECTED] += num_rejected_teachers
        metrics["num_clusters"] = num_clusters
        metrics.update(zip(INDEX_NAMES, state.indices.tolist(), strict=True))
        metrics["teacher_accuracy"] = float(result.teacher_accuracy) if self.initial_teacher else float("nan")
        metrics[WITHIN_CLUSTER_DRIFT] = float(result.totals.within_group_drift)
        metrics[TOTAL_DRIFT] = float(result.totals.total_drift)
        new_state = trained._replace(round_num=np.int32(state.round_num + 1), virtual_time_s=np.float64(virtual_time_s))
        return RoundOutput(new_state, {**metrics, **spent})

    def count_shared_bytes(self, state: ServerState) -> int:
        """Of the statistics that all clients together send, before the first round."""
        return self.sharing.bytes_up if self.sharing and state.round_num == 0 else 0

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        del next_state
        shared = ClientWork(self.everyone, bytes_up=self.count_shared_bytes(state) / len(self.everyone))
        return [*self.compute_costs(state, self.choose_trainers(state)).phases, shared]

    def compute_costs(self, state: ServerState, trainers: np.ndarray) -> RoundCosts:
        student_bytes, teacher_bytes = (
            compute_model_bytes(self.initial_student),
            compute_model_bytes(self.initial_teacher),
        )
        now_s = float(state.virtual_time_s)
        return compute_round_costs(self.clients, self.config, trainers, student_bytes, teacher_bytes, now_s)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.student}

    def get_teachers(self, state: ServerState) -> dict[str, Weights]:
        num_teachers = count_clusters(state.assignments) if self.initial_teacher else 0
        return {f"teacher_{cluster}": take_model(state.teachers, cluster) for cluster in range(num_teachers)}

    def client_model(self, state: ServerState) -> list[str]:
        del state
        return ["global"] * len(self.everyone)

    def client_columns(self, state: ServerState) -> dict[str, list]:
        columns = {CLUSTER: state.assignments.tolist()}
        if self.sharing is not None:
            plane = project_to_plane(standardize(state.statistics))
            columns |= {PLANE_X: plane[:, 0].tolist(), PLANE_Y: plane[:, 1].tolist()}
        return columns

    def summarize(self, state: ServerState) -> dict:
        sizes = np.bincount(state.assignments).tolist()
        summary = {"num_clusters": len(sizes), "cluster_sizes": sizes}
        if self.sharing is not None:
            summary["spent_epsilon"] = self.sharing.spent_epsilon
        return {**summary, **super().summarize(state)}

    @property
    def released(self) -> str:
        released = "the student of every round"
        if self.initial_teacher:
            released += ", the clusters' teachers"
        if self.sharing is not None:
            config = self.config
            released += f", the noisy statistics (epsilon {config.privacy_epsilon:g} of it at {config.privacy_delta:g})"
        return released

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(student=function(state.student))


def build_fed_sikd_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedSiKDConfig, seed: int
) -> FedSiKDProcess:
    """FedSiKD, or RandomCluster, as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the student; its `teacher` is the teacher.
      clients: the federation; all clients take part in every round.
      config: settings.
      seed: of the first weights, the clustering, the privacy noise and the local training.

    Raises:
      ConfigError: distillation is asked for and the model has no teacher; privacy, and the data set has no known
        feature range, a model has weights that are not trained, or the budget is too small.
    """
    teacher_spec = model_spec.teacher if config.trains_teacher else None
    if teacher_spec is None and config.trains_teacher:
        mend = (
            "1 (no distillation), since the model has no teacher for these examples; or name one with --teacher_model"
        )
        raise ConfigError("label_weight", config.label_weight, mend)
    student = initialize_weights(model_spec, seed)
    teacher = initialize_weights(teacher_spec, seed, "teacher weights") if teacher_spec else ()
    private_sum, build_students, build_teachers = None, build_student_round, build_grouped_round
    if config.privacy.is_active:
        if config.uses_statistics:  # which hide examples, and so does the whole run
            check_delta(config.privacy, int(clients.num_train.sum()), "examples")
        check_private_model(model_spec)
        if teacher_spec:
            check_private_model(teacher_spec)
        private_sum = build_fed_sikd_private_sum(config, len(clients.clients), bool(teacher), seed)
        build_students = build_private_student_sums
        build_teachers = functools.partial(build_private_sums, compression=CompressionConfig())
    return FedSiKDProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_student=student,
        initial_teacher=teacher,
        # The number of clusters is known only after the statistics are in, and on resume comes from the state.
        build_student_round=functools.cache(
            lambda num_clusters: build_students(model_spec, config, student, teacher, num_clusters)
        ),
        build_teacher_round=functools.cache(
            lambda num_clusters: build_teachers(teacher_spec, config.teacher_training, teacher, num_clusters)
        ),
        sharing=build_statistics_sharing(model_spec, clients, config, seed) if config.uses_statistics else None,
        private_sum=private_sum,
    )
