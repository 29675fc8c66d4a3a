"""Settings of FedSiKD and of its baseline with random clusters. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.aggregation import (
    MAX_BITS,
    MIN_BITS,
    UNCOMPRESSED_BITS,
    AggregationConfig,
    CompressionConfig,
    ServerStepConfig,
    check_no_privacy,
)
from tff_algos.settings.config_fields import (
    SMOKE_CLIENTS,
    ConfigError,
    Needs,
    check_enough_clients,
    group,
    needs_value,
    setting,
)
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import ADAM_RATES
from tff_algos.settings.update_privacy import (
    ACCOUNTANTS,
    PLD,
    RDP,
    PrivateAlgorithmConfig,
    UpdatePrivacyConfig,
    check_equal_weights,
)

IF_NOISY = Needs("privacy_epsilon", lambda epsilon: epsilon > 0, "an epsilon above 0")


@dataclasses.dataclass(frozen=True)
class FedSiKDConfig(PrivateAlgorithmConfig):
    """FedSiKD; the paper prints only the batch size, the number of clients and the rounds; the rest is chosen by us.

    `server` is the step of the global student, along the mean over the clusters of the mean updates in each: the only
    one, since the clusters keep no student of their own. The teachers are averaged plainly.
    """

    student: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="student_")
    teacher_training: LocalTrainingConfig = group(lambda: LocalTrainingConfig(epochs=10), flag_prefix="teacher_")
    clustering: str = setting(
        "kmeans", "kmeans: by the clients' statistics; random: at random (RandomCluster).", choices=("kmeans", "random")
    )
    cluster_sizes: str = setting(
        "kmeans",
        "Sizes of random clusters: those of k-means on the statistics, so that only the members differ; or equal.",
        choices=("kmeans", "equal"),
    )
    statistics: str = setting(
        "scalar",
        "Statistics of Eq. (1): scalar, over all values of a client; per_feature, for each feature.",
        choices=("scalar", "per_feature"),
        needs=needs_value("cluster_sizes", "kmeans"),
    )
    num_clusters: int = setting(
        3, "Number of clusters k; 0 lets the three indices choose.", minimum=0, smoke=SMOKE_CLIENTS
    )
    max_clusters: int = setting(
        8,
        "Largest k that the indices may choose.",
        minimum=2,
        needs=Needs("num_clusters", lambda number: number == 0, "--{flag}=0"),
    )
    teacher: str = setting(
        "leader",
        "leader: one client of the cluster trains the teacher alone (paper); cluster: all its members do, federated.",
        choices=("leader", "cluster"),
    )
    teacher_bits: int = setting(
        UNCOMPRESSED_BITS,
        f"Bits of a teacher's weight that travels, {MIN_BITS} to {MAX_BITS}; {UNCOMPRESSED_BITS}: no compression.",
        needs=Needs("label_weight", lambda weight: weight < 1, "--{flag} below 1"),
    )
    leader: str = setting(
        "examples",
        "The leader is the client with the most examples, or the fastest device.",
        choices=("examples", "speed"),
    )
    label_weight: float = setting(
        0.5, "Weight w of the cross-entropy; 1 - w is the distillation's. 1 means no teacher.", minimum=0, maximum=1
    )
    temperature: float = setting(3.0, "Temperature T of the distillation.", above=0)
    temperature_squared: bool = setting(False, "Multiply the distillation term by T^2 (Hinton et al. 2015).")
    distillation_inputs: str = setting(
        "logits",
        "What is divided by T: logits, or probabilities as in the authors' published code.",
        choices=("logits", "probabilities"),
    )
    weighting: str = setting(
        "equal",
        "Average in a cluster and over clusters: equal (as printed), or by examples.",
        choices=("equal", "examples"),
    )
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")
    server: ServerStepConfig = group(ServerStepConfig, flag_prefix="server_")
    privacy_epsilon: float = setting(
        0.0,
        "Epsilon of the Gaussian mechanism on the statistics; 0 shares them as they are.",
        minimum=0,
        needs=needs_value("cluster_sizes", "kmeans"),
    )
    privacy_delta: float = setting(
        1e-5,
        "Delta of the Gaussian mechanism.",
        above=0,
        below=1,
        needs=IF_NOISY,
    )
    privacy_accountant: str = setting(
        PLD,
        "What says what the statistics cost, see dp_accountant.",
        choices=ACCOUNTANTS,
        needs=IF_NOISY,
        of_old_runs=RDP,
    )
    privacy: UpdatePrivacyConfig = group(UpdatePrivacyConfig, flag_prefix="dp_")

    def __post_init__(self):
        super().__post_init__()
        check_no_privacy(self.aggregation, self.privacy)
        self._check_bits()
        if self.num_clusters == 0 and not self.uses_statistics:
            raise ConfigError(
                "num_clusters", 0, "a number at least 1, since clusters of equal sizes have no indices to choose by"
            )
        if self.privacy.is_active:
            self._check_private()

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if there are more clusters than clients, or the privacy means nothing for so many."""
        check_enough_clients("num_clusters", self.num_clusters, num_clients)
        super().check_clients(num_clients)

    def _check_bits(self) -> None:
        try:
            _ = self.teacher_compression
        except ConfigError as error:
            raise ConfigError("teacher_bits", self.teacher_bits, error.expected) from None

    @property
    def teacher_compression(self) -> CompressionConfig:
        """How teachers travel: rounded to the nearest level."""
        return CompressionConfig(self.teacher_bits)

    def _check_private(self) -> None:
        """Raises ConfigError unless everything that leaves a client has noise."""
        asked = f"with dp_epsilon={self.privacy.epsilon:g}"
        check_equal_weights(self.privacy, "weighting", self.weighting)
        if self.trains_teacher and self.teacher != "cluster":
            expected = f"cluster {asked}: a teacher that one client trained alone would show its data to others"
            raise ConfigError("teacher", self.teacher, expected)
        if self.uses_statistics and not self.privacy_epsilon:
            raise ConfigError("privacy_epsilon", 0.0, f"above 0 {asked}: the clients share their statistics, too")

    @property
    def trains_teacher(self) -> bool:
        """Whether there is anything to distil: with `label_weight` 1 the labels are all."""
        return self.label_weight < 1.0

    @property
    def uses_statistics(self) -> bool:
        """Whether the clients share statistics: k-means needs them, for the clusters or for the sizes alone."""
        return self.clustering == "kmeans" or self.cluster_sizes == "kmeans"


BASELINE_SEARCHED = {
    "student_learning_rate": ADAM_RATES,
    # As printed: the three indices choose k.
    "num_clusters": "0",
    # How much the labels count beside the teacher, which is not printed. Of 0.3 to 0.9, trials on MNIST chose the most.
    "label_weight": "float(0.3,0.9)",
    # A leader's teacher sends half as much, and has seen one client's data.
    "teacher": "leader|cluster",
}
# Turned images differ in each pixel's mean, and not in that of all: k-means on the latter finds no groups there.
SEARCHED = {**BASELINE_SEARCHED, "statistics": "scalar|per_feature"}
