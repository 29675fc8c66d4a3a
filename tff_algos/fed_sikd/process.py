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
- A cluster's teacher goes on from round to round. The paper starts it from the global weights each round, which works
  only if teacher and student share one architecture; by its own tables they do not.
- All teachers start alike. Sending them to the members is counted in the byte ledger; a leader has its own already.
- The paper names neither optimizer nor epochs, temperature, loss weight or k; the experiments say where ours come from.
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
- `teacher_bits` rounds teachers and their updates as they travel, which the paper does not; 32 bits by default.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import ClientInput, tell_clients
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_sikd.clustering import choose_leaders, cluster_clients
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.private_round import build_private_aggregators
from tff_algos.fed_sikd.sharing import (
    StatisticsSharing,
    build_statistics_sharing,
    take_noisy_sizes,
    take_statistics,
)
from tff_algos.fed_sikd.statistics import project_to_plane, standardize
from tff_algos.fed_sikd.student_round import ClusterMeanAggregator, average_clusters, build_distillation
from tff_algos.protocol import (
    CLUSTER,
    PLANE_X,
    PLANE_Y,
    TOTAL_DRIFT,
    WITHIN_CLUSTER_DRIFT,
    ClientWork,
    Weights,
)
from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.rounds.clustered import count_clusters
from tff_algos.rounds.synchronous import Participant, SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import PhaseOutcome, SlotInput, TrainingPhase, build_group_training
from tff_algos.rounds.transport import build_transport
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, initialize_weights, is_float, stack_models, take_model

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
      aggregator: of the students' aggregator, and of the teachers' if updates are private.
      server: of the student's server step.
      kept: nothing.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    student: Weights
    teachers: Weights
    assignments: np.ndarray
    shared: np.ndarray
    indices: np.ndarray
    aggregator: Any = ()
    server: Any = ()
    kept: Any = ()

    @property
    def statistics(self) -> np.ndarray:
        """The clients' statistics, shape (clients, columns)."""
        return take_statistics(self.shared)

    @property
    def noisy_sizes(self) -> np.ndarray | None:
        """The clients' numbers of examples as they released them, shape (clients,); None without privacy."""
        return take_noisy_sizes(self.shared)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FedSiKDProcess(SynchronousProcess):
    """FedSiKD: `phase` is that of the students, with a group for each cluster; the server steps the global student.

    Attributes:
      teacher_phase: step 1 of the round; None in a run without teachers.
      initial_teacher: every cluster's teacher before the first round; empty in a run without teachers.
      sharing: how the statistics are collected; None if nothing depends on them.
    """

    teacher_phase: TrainingPhase | None
    initial_teacher: Weights
    sharing: StatisticsSharing | None

    takes_new_clients = False

    def initialize(self) -> ServerState:
        """Collects the statistics and clusters the clients; all teachers start alike."""
        num_clients = len(self.everyone)
        shared = self.sharing.collect() if self.sharing else np.zeros((num_clients, 0))
        statistics = take_statistics(shared) if self.sharing else None
        clustering = cluster_clients(statistics, num_clients, self.config, self.seed)
        num_clusters = count_clusters(clustering.assignments)
        return ServerState(
            np.int32(0),
            np.float64(0.0),
            self.initial_weights,
            stack_models([self.initial_teacher] * num_clusters),
            clustering.assignments,
            shared,
            np.asarray([getattr(clustering, name) for name in INDEX_NAMES], np.float64),
            self.aggregator.initialize(num_clusters),
            self.server_step.initialize_one(),
        )

    def choose_cohort(self, state: ServerState) -> tuple[float, np.ndarray]:
        """All clients, at once."""
        return 0.0, self.everyone

    def count_slots(self, num_invited: int) -> int:
        return 1

    def count_groups(self, state: ServerState) -> int:
        return count_clusters(state.assignments)

    def choose_trainers(self, state: ServerState) -> np.ndarray:
        """The clients that train a teacher, ascending: the leaders, all clients, or none if there is no teacher."""
        if not self.initial_teacher:
            return self.everyone[:0]
        if self.config.teacher == "cluster":
            return self.everyone
        speeds, noisy = self.clients.profiles.examples_per_s, state.noisy_sizes
        sizes = self.clients.num_train if noisy is None else noisy
        # In the order of the clients, as a cohort is told.
        return np.sort(choose_leaders(state.assignments, sizes, speeds, self.config.leader))

    def build_inputs(
        self, state: ServerState, indices: np.ndarray, purpose: str, training: LocalTrainingConfig
    ) -> list[ClientInput]:
        """What these clients are told, each of its cluster."""
        groups, weighting, round_num = state.assignments[indices], self.config.weighting, int(state.round_num) + 1
        inputs = tell_clients(self.clients, indices, groups, weighting, training, self.seed, purpose, round_num)
        noisy = state.noisy_sizes
        if weighting == "examples" and noisy is not None:  # exact weights would tell the sizes that the noise hides
            inputs = [each._replace(weight=np.float32(n)) for each, n in zip(inputs, noisy[indices], strict=True)]
        return inputs

    def prepare(self, state: ServerState, cohort: np.ndarray) -> tuple[ServerState, int]:
        """Step 1 of the round: the state with the new teachers, and how many updates were rejected."""
        if self.teacher_phase is None:
            return state, 0
        trainers, groups = self.choose_trainers(state), self.count_groups(state)
        inputs = self.build_inputs(state, trainers, "teacher training", self.config.teacher_training)
        placed, round_num = [SlotInput(each) for each in inputs], int(state.round_num) + 1
        outcome = self.teacher_phase.run(self.send_teachers(state), placed, groups, state.aggregator, round_num)
        teachers = add_deltas(state.teachers, outcome.aggregate.update)
        return state._replace(teachers=teachers, aggregator=outcome.aggregate.state), int(outcome.totals.num_rejected)

    def distribute(self, state: ServerState) -> tuple[Weights, Weights]:
        return state.student, self.send_teachers(state)

    def send_teachers(self, state: ServerState) -> Weights:
        """The teachers, stacked, as the clients have them."""
        if self.teacher_phase is None:
            return state.teachers
        return self.teacher_phase.transport.send(state.teachers, int(state.round_num))

    def invite(self, state: ServerState, cohort: np.ndarray, purpose: str = "training") -> list[Participant]:
        inputs = self.build_inputs(state, cohort, purpose, self.config.student)
        return [Participant(int(index), each) for index, each in zip(cohort, inputs, strict=True)]

    def apply(self, state: ServerState, outcome: PhaseOutcome) -> ServerState:
        """Step 4 of the round; if no client counts, the student stays."""
        aggregate = outcome.aggregate
        if not aggregate.has_update.any():
            return state
        # Of one row where the aggregator has averaged the clusters itself.
        update = average_clusters(aggregate.update, aggregate.weight, self.config.weighting)
        student, server = self.server_step.step_one(state.student, update, state.server, aggregate.divisor)
        return state._replace(student=student, server=server)

    def list_phases(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """The teachers' phase, then the students' phase."""
        student_bytes, trainers = self.transport.model_bytes, self.choose_trainers(state)
        teacher_bytes = self.teacher_phase.transport.model_bytes if self.teacher_phase else 0
        down = np.full(len(cohort), student_bytes + teacher_bytes)
        if self.config.teacher == "leader":
            down[trainers] -= teacher_bytes  # a leader has trained its cluster's teacher itself
        of_teachers, of_students = (
            np.array([count_examples_trained(training, n) for n in self.clients.num_train])
            for training in (self.config.teacher_training, self.config.student)
        )
        return [
            ClientWork(trainers, of_teachers[trainers], bytes_up=teacher_bytes),
            ClientWork(cohort, of_students, down, student_bytes),
        ]

    def list_untimed(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """The statistics that all clients send before the first round."""
        shared_bytes = self.sharing.bytes_up if self.sharing and state.round_num == 0 else 0
        return [ClientWork(cohort, bytes_up=shared_bytes / len(cohort))]

    def describe(
        self, state: ServerState, new_state: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> dict[str, float]:
        score = outcome.sums
        return {
            "num_clusters": self.count_groups(state),
            **dict(zip(INDEX_NAMES, state.indices.tolist(), strict=True)),
            "teacher_accuracy": float(score.num_correct / score.num_examples) if self.initial_teacher else np.nan,
            WITHIN_CLUSTER_DRIFT: float(outcome.totals.within_group_drift),
            TOTAL_DRIFT: float(outcome.totals.total_drift),
        }

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.student}

    def get_teachers(self, state: ServerState) -> dict[str, Weights]:
        num_teachers = self.count_groups(state) if self.initial_teacher else 0
        return {f"teacher_{cluster}": take_model(state.teachers, cluster) for cluster in range(num_teachers)}

    def client_columns(self, state: ServerState) -> dict[str, list]:
        columns = {CLUSTER: state.assignments.tolist()}
        if self.sharing is not None:
            plane = project_to_plane(standardize(state.statistics))
            columns |= {PLANE_X: plane[:, 0].tolist(), PLANE_Y: plane[:, 1].tolist()}
        return columns

    def summarize(self, state: ServerState) -> dict[str, Any]:
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

    def _map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
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
    if model_spec.teacher is None and config.trains_teacher:
        expected = (
            "1 (no distillation), since the model has no teacher for these examples; or name one with --teacher_model"
        )
        raise ConfigError("label_weight", config.label_weight, expected)
    # Those that see single updates are by the settings.
    of_students = None if config.aggregation.is_listed else ClusterMeanAggregator(config.weighting)
    of_teachers = SumAggregator()
    if config.privacy.is_active:
        of_students, of_teachers = build_private_aggregators(model_spec, clients, config, seed)
    parts = build_parts(model_spec, clients, config, seed, build_distillation(model_spec, config), of_students)
    teacher, teacher_phase = (), None
    if config.trains_teacher:
        teacher = initialize_weights(model_spec.teacher, seed, "teacher weights")
        teacher_phase = TrainingPhase(
            build_group_training(model_spec.teacher, config.teacher_training),
            build_transport(model_spec.teacher, teacher, seed, config.teacher_compression),
            of_teachers,
            tuple(array.shape for array in teacher if is_float(array)),
        )
    return FedSiKDProcess(
        **parts,
        teacher_phase=teacher_phase,
        initial_teacher=teacher,
        sharing=build_statistics_sharing(model_spec, clients, config, seed) if config.uses_statistics else None,
    )
