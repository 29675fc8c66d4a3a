"""The table of algorithms: a row tells the driver everything it needs to know of one. Imports no TensorFlow."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from datasets.own_objects import import_object
from launch.settings.errors import FlagError
from launch.settings.flag_fields import FlagField, iterate_fields
from tff_algos.amfl_p import config as amfl_p
from tff_algos.apfl import config as apfl
from tff_algos.async_periodic import config as async_periodic
from tff_algos.buffered import config as buffered
from tff_algos.cfl import config as cfl
from tff_algos.ditto import config as ditto
from tff_algos.fed_async import config as fed_async
from tff_algos.fed_avg import config as fed_avg
from tff_algos.fed_cd import config as fed_cd
from tff_algos.fed_nova import config as fed_nova
from tff_algos.fed_proto import config as fed_proto
from tff_algos.fed_sikd import config as fed_sikd
from tff_algos.fl_hc import config as fl_hc
from tff_algos.ifca import config as ifca
from tff_algos.local_only import config as local_only
from tff_algos.moon import config as moon
from tff_algos.oracle import config as oracle
from tff_algos.partial import config as partial
from tff_algos.pfedme import config as pfedme
from tff_algos.pooled import config as pooled
from tff_algos.scaffold import config as scaffold
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.config_fields import AlgorithmConfig

OWN_FORM = "module:ALGORITHM"  # of a user's own, as --algo takes it


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One algorithm as the command line knows it.

    Attributes:
      name: of its run folders, in snake case; for a row of `ALGORITHMS`, what `--algo` takes. Before the name of a
        setting, as in `--fedavg_epochs`, it gives the setting of this algorithm alone.
      title: its name in plots, tables and claims.
      color: its colour in plots, one of Okabe and Ito's; the four systems share one, since no figure compares them.
      summary: a line for `--help`.
      config_class: its settings, whose fields become flags.
      builder: "module:function" of its process builder, imported only when a run starts. In a user's module, the
        function's name alone means one of that module.
      fixed: values of fields that this algorithm does not leave to the user.
      defaults: values of fields that differ from the config's own defaults.
      shared_defaults: values of shared flags that differ from the flags' own.
      unused: further fields without a flag, which keep their defaults because nothing reads them.
      beside_steps: what its clients do beside steps of their optimizer, and a phone that trains does not; braces hold
        settings, as in "a pull (pull={pull:g})".
      takes_floats_alone: whether it refuses models of quantization-aware training.
      searched: of its settings those that matter most, each with its choices or its range as `--search` writes them:
        what trials vary where nobody says it. A setting with one choice has that in all trials.
    """

    name: str
    title: str
    color: str
    summary: str
    config_class: type[AlgorithmConfig]
    builder: str
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    shared_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unused: tuple[str, ...] = ()
    beside_steps: str = ""
    takes_floats_alone: bool = False
    searched: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def flag_prefix(self) -> str:
        """What the name of a setting begins with where it is meant for this algorithm alone."""
        return f"{self.name}_"

    @property
    def fields_without_flag(self) -> frozenset[str]:
        return frozenset(self.fixed) | frozenset(self.unused)

    def default_config(self) -> AlgorithmConfig:
        """The settings with which the algorithm runs if no flag is given."""
        return self.config_class(**self.fixed, **self.defaults)

    @functools.cached_property
    def fields(self) -> tuple[FlagField, ...]:
        """Its settings as flags, with their defaults."""
        return tuple(iterate_fields(self.default_config(), self.fields_without_flag))

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """What its settings are called."""
        return frozenset(field.name for field in self.fields)

    def load_builder(self) -> Callable[..., Any]:
        """Imports the builder: (model_spec, clients, config, seed) -> FederatedProcess.

        Raises:
          FlagError: there is no such function, or importing its module fails.
        """
        label = f"builder of {self.name}"
        builder = import_object(self.builder, label, FlagError)
        if not callable(builder):
            raise FlagError(f"{label}: expected a function, {self.builder} is a {type(builder).__name__}")
        return builder


ROWS = (
    Algorithm(
        name="fedavg",
        title="FedAvg",
        color="#CC79A7",
        summary="FedAvg (McMahan et al. 2017); FedProx with a proximal weight.",
        config_class=fed_avg.FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        searched=fed_avg.SEARCHED,
    ),
    Algorithm(
        name="fedadam",
        title="FedAdam",
        color="#E69F00",
        summary="FedAdam (Reddi et al. 2021): FedAvg with Adam at the server.",
        config_class=fed_avg.FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        defaults={"server": ServerStepConfig(optimizer="adam", learning_rate=0.03)},
        searched=fed_avg.ADAPTIVE_SEARCHED,
    ),
    Algorithm(
        name="fedyogi",
        title="FedYogi",
        color="#56B4E9",
        summary="FedYogi (Reddi et al. 2021): FedAvg with Yogi at the server.",
        config_class=fed_avg.FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        defaults={"server": ServerStepConfig(optimizer="yogi", learning_rate=0.03)},
        searched=fed_avg.ADAPTIVE_SEARCHED,
    ),
    Algorithm(
        name="fedavgm",
        title="FedAvgM",
        color="#D55E00",
        summary="FedAvgM (Hsu et al. 2019): FedAvg with momentum at the server.",
        config_class=fed_avg.FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        defaults={"server": ServerStepConfig(momentum=0.9)},
        searched=fed_avg.MOMENTUM_SEARCHED,
    ),
    Algorithm(
        name="fedsikd",
        title="FedSiKD",
        color="#0072B2",
        summary="FedSiKD: clusters by clients' statistics, a teacher for each.",
        config_class=fed_sikd.FedSiKDConfig,
        builder="tff_algos.fed_sikd.process:build_fed_sikd_process",
        fixed={"clustering": "kmeans"},
        unused=("cluster_sizes",),
        searched=fed_sikd.SEARCHED,
    ),
    Algorithm(
        name="random_cluster",
        title="RandomCluster",
        color="#D55E00",
        summary="RandomCluster: FedSiKD with clusters drawn at random.",
        config_class=fed_sikd.FedSiKDConfig,
        builder="tff_algos.fed_sikd.process:build_fed_sikd_process",
        fixed={"clustering": "random"},
        searched=fed_sikd.BASELINE_SEARCHED,
    ),
    Algorithm(
        name="fl_hc",
        title="FL+HC",
        color="#009E73",
        summary="FL+HC (Briggs et al. 2020): FedAvg inside clusters of updates.",
        config_class=fl_hc.FLHCConfig,
        builder="tff_algos.fl_hc.process:build_fl_hc_process",
        searched=fl_hc.SEARCHED,
    ),
    Algorithm(
        name="cfl",
        title="CFL",
        color="#E69F00",
        summary="CFL (Sattler et al. 2020): clusters at odds are cut into two.",
        config_class=cfl.CFLConfig,
        builder="tff_algos.cfl.process:build_cfl_process",
        searched=cfl.SEARCHED,
    ),
    Algorithm(
        name="ifca",
        title="IFCA",
        color="#56B4E9",
        summary="IFCA (Ghosh et al. 2020): clients train the best of k models.",
        config_class=ifca.IFCAConfig,
        builder="tff_algos.ifca.process:build_ifca_process",
        unused=("privacy",),
        searched=ifca.SEARCHED,
    ),
    Algorithm(
        name="fedcd",
        title="FedCD",
        color="#0072B2",
        summary="FedCD: clones and deletes models; similar clients share one.",
        config_class=fed_cd.FedCDConfig,
        builder="tff_algos.fed_cd.process:build_fed_cd_process",
        shared_defaults={"partition": "hierarchical", "rounds": 45},
        searched=fed_cd.SEARCHED,
    ),
    Algorithm(
        name="async_periodic",
        title="Asynchronous FL",
        color="#0072B2",
        summary="Asynchronous FL (Hu et al. 2021): aggregation every period.",
        config_class=async_periodic.AsyncPeriodicConfig,
        builder="tff_algos.async_periodic.process:build_async_periodic_process",
        searched=async_periodic.SEARCHED,
    ),
    Algorithm(
        name="fed_async",
        title="FedAsync",
        color="#E69F00",
        summary="FedAsync (Xie et al. 2019): every update counts as it arrives.",
        config_class=fed_async.FedAsyncConfig,
        builder="tff_algos.fed_async.process:build_fed_async_process",
        searched=fed_async.SEARCHED,
    ),
    Algorithm(
        name="buffered",
        title="FedBuff",
        color="#56B4E9",
        summary="FedBuff (Nguyen et al. 2022): averages every few updates.",
        config_class=buffered.BufferedConfig,
        builder="tff_algos.buffered.process:build_buffered_process",
        searched=buffered.SEARCHED,
    ),
    Algorithm(
        name="amfl_p",
        title="AMFL-P",
        color="#0072B2",
        summary="AMFL-P: a meta-learned start, personalised on unequal devices.",
        config_class=amfl_p.AMFLPConfig,
        builder="tff_algos.amfl_p.process:build_amfl_p_process",
        # A round is one step of the server, from a few examples of each device.
        shared_defaults={"dataset": "building", "rounds": 300, "rounds_per_evaluation": 20, "batch_size": 48},
        beside_steps="the meta-gradient: it takes the inner steps",
        takes_floats_alone=True,
        searched=amfl_p.SEARCHED,
    ),
    Algorithm(
        name="fine_tuning",
        title="Fine-Tuning",
        color="#D55E00",
        summary="Fine-Tuning: FedAvg, then steps on each client's own data.",
        config_class=fed_avg.FineTunedConfig,
        builder="tff_algos.fed_avg.process:build_fine_tuned_process",
        shared_defaults={"dataset": "building", "rounds": 30, "rounds_per_evaluation": 5, "batch_size": 48},
        searched=fed_avg.FINE_TUNED_SEARCHED,
    ),
    Algorithm(
        name="ditto",
        title="Ditto",
        color="#E69F00",
        summary="Ditto (Li et al. 2021): FedAvg, plus a model for each client.",
        config_class=ditto.DittoConfig,
        builder="tff_algos.ditto.process:build_ditto_process",
        beside_steps="the pull of a client's own model to the shared one (pull={pull:g})",
        searched=ditto.SEARCHED,
    ),
    Algorithm(
        name="apfl",
        title="APFL",
        color="#D55E00",
        summary="APFL (Deng et al. 2020): clients mix own and global models.",
        config_class=apfl.APFLConfig,
        builder="tff_algos.apfl.process:build_apfl_process",
        beside_steps="the mixture of a client's own model with the shared one",
        searched=apfl.SEARCHED,
    ),
    Algorithm(
        name="partial",
        title="Partial",
        color="#CC79A7",
        summary="FedPer, FedRep, FedBN, LG-FedAvg: some layers are personal.",
        config_class=partial.PartialConfig,
        builder="tff_algos.partial.process:build_partial_process",
        beside_steps="the choice of the layers that stay with a client (personal={personal}, schedule={schedule})",
        searched=partial.SEARCHED,
    ),
    Algorithm(
        name="pfedme",
        title="pFedMe",
        color="#009E73",
        summary="pFedMe (Dinh et al. 2020): own models near the global one.",
        config_class=pfedme.PFedMeConfig,
        builder="tff_algos.pfedme.process:build_pfedme_process",
        beside_steps="the steps of w towards the client's own model (inner_steps={inner_steps}, "
        "outer_rate={outer_rate:g}): it trains the own model, near the weights set",
        searched=pfedme.SEARCHED,
    ),
    Algorithm(
        name="scaffold",
        title="SCAFFOLD",
        color="#56B4E9",
        summary="SCAFFOLD (Karimireddy et al. 2020): corrects client drift.",
        config_class=scaffold.ScaffoldConfig,
        builder="tff_algos.scaffold.process:build_scaffold_process",
        unused=("compression", "privacy"),
        beside_steps="SCAFFOLD's correction of every gradient",
        searched=scaffold.SEARCHED,
    ),
    Algorithm(
        name="fednova",
        title="FedNova",
        color="#009E73",
        summary="FedNova (Wang et al. 2020): a mean fair to unequal steps.",
        config_class=fed_nova.FedNovaConfig,
        builder="tff_algos.fed_nova.process:build_fed_nova_process",
        unused=("privacy",),
        beside_steps="the division of an update by its steps",
        searched=fed_nova.SEARCHED,
    ),
    Algorithm(
        name="moon",
        title="MOON",
        color="#009E73",
        summary="MOON (Li et al. 2021): drawn to the global representations.",
        config_class=moon.MoonConfig,
        builder="tff_algos.moon.process:build_moon_process",
        beside_steps="the contrast with the client's last model (contrast_weight={contrast_weight:g})",
        takes_floats_alone=True,
        searched=moon.SEARCHED,
    ),
    Algorithm(
        name="oracle",
        title="Oracle",
        color="#000000",
        summary="Oracle: FedAvg inside the groups that the data know.",
        config_class=oracle.OracleConfig,
        builder="tff_algos.oracle.process:build_oracle_process",
        shared_defaults={"partition": "hierarchical"},
        unused=("privacy",),
        searched=oracle.SEARCHED,
    ),
    Algorithm(
        name="fedproto",
        title="FedProto",
        color="#D55E00",
        summary="FedProto (Tan et al. 2022): clients of different models.",
        config_class=fed_proto.FedProtoConfig,
        builder="tff_algos.fed_proto.process:build_fed_proto_process",
        unused=("compression", "client_weighting", "aggregation", "server", "privacy"),
        beside_steps="the distance to the prototypes (prototype_weight={prototype_weight:g})",
        takes_floats_alone=True,
        searched=fed_proto.SEARCHED,
    ),
    Algorithm(
        name="local_only",
        title="local training",
        color="#009E73",
        summary="Local training: every client on its own data, no server.",
        config_class=local_only.LocalOnlyConfig,
        builder="tff_algos.local_only.process:build_local_only_process",
        shared_defaults={"dataset": "building", "rounds": 30},
        searched=local_only.SEARCHED,
    ),
    Algorithm(
        name="pooled",
        title="Pooled data",
        color="#D55E00",
        summary="Pooled data: all examples in one place; a bound, not federated.",
        config_class=pooled.PooledConfig,
        builder="tff_algos.pooled.process:build_pooled_process",
        searched=pooled.SEARCHED,
    ),
)
ALGORITHMS: dict[str, Algorithm] = {row.name: row for row in ROWS}
