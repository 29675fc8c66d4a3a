"""The table of algorithms: a row gives the driver everything it needs of one. Imports no TensorFlow."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.async_periodic.config import AsyncPeriodicConfig
from tff_algos.buffered.config import BufferedConfig
from tff_algos.fed_async.config import FedAsyncConfig
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.settings.fine_tuning import FineTuningConfig


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One algorithm as the command line knows it; its key in `ALGORITHMS` is the spelling of `--algo`.

    Attributes:
      title: its name in plots, tables and claims.
      color: its colour in plots, one of Okabe and Ito's; the four systems share one, since no figure compares them.
      summary: a line for `--help`.
      config_class: its settings, a frozen dataclass whose fields become flags.
      builder: "module:function" of its process builder, imported only when a run starts.
      fixed: values of fields that this algorithm does not leave to the user.
      defaults: values of fields that differ from the config's own defaults.
      shared_defaults: values of shared flags that differ from theirs.
      unused: further fields without a flag, which keep their defaults because nothing reads them.
    """

    title: str
    color: str
    summary: str
    config_class: type
    builder: str
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    shared_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unused: tuple[str, ...] = ()

    @property
    def fields_without_flag(self) -> frozenset[str]:
        return frozenset(self.fixed) | frozenset(self.unused)

    def default_config(self) -> Any:
        """The settings with which the algorithm runs if no flag is given."""
        return self.config_class(**self.fixed, **self.defaults)

    def load_builder(self) -> Callable[..., Any]:
        """Imports the builder: (model_spec, clients, config, seed) -> FederatedProcess."""
        module, function = self.builder.split(":")
        return getattr(importlib.import_module(module), function)


ALGORITHMS: dict[str, Algorithm] = {
    "fedavg": Algorithm(
        title="FedAvg",
        color="#CC79A7",
        summary="FedAvg (McMahan et al. 2017); FedProx with a proximal weight.",
        config_class=FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        unused=("fine_tuning",),
    ),
    "fedsikd": Algorithm(
        title="FedSiKD",
        color="#0072B2",
        summary="FedSiKD: clusters by the clients' statistics, a teacher for each cluster.",
        config_class=FedSiKDConfig,
        builder="tff_algos.fed_sikd.process:build_fed_sikd_process",
        fixed={"clustering": "kmeans"},
    ),
    "random_cluster": Algorithm(
        title="RandomCluster",
        color="#D55E00",
        summary="RandomCluster: FedSiKD with clusters drawn at random.",
        config_class=FedSiKDConfig,
        builder="tff_algos.fed_sikd.process:build_fed_sikd_process",
        fixed={"clustering": "random"},
        unused=("statistics", "max_clusters", "privacy_epsilon", "privacy_delta"),
    ),
    "fl_hc": Algorithm(
        title="FL+HC",
        color="#009E73",
        summary="FL+HC (Briggs et al. 2020): clusters of similar updates, then FedAvg inside each.",
        config_class=FLHCConfig,
        builder="tff_algos.fl_hc.process:build_fl_hc_process",
    ),
    "fedcd": Algorithm(
        title="FedCD",
        color="#0072B2",
        summary="FedCD: global models are cloned and deleted until clients that are alike share one.",
        config_class=FedCDConfig,
        builder="tff_algos.fed_cd.process:build_fed_cd_process",
        shared_defaults={"partition": "hierarchical", "rounds": 45},
    ),
    "async_periodic": Algorithm(
        title="Asynchronous FL",
        color="#0072B2",
        summary="Asynchronous FL: aggregation every period, scheduled devices, weights by age (Hu et al. 2021).",
        config_class=AsyncPeriodicConfig,
        builder="tff_algos.async_periodic.process:build_async_periodic_process",
    ),
    "fed_async": Algorithm(
        title="FedAsync",
        color="#E69F00",
        summary="FedAsync (Xie et al. 2019): every update is mixed in when it arrives.",
        config_class=FedAsyncConfig,
        builder="tff_algos.fed_async.process:build_fed_async_process",
    ),
    "buffered": Algorithm(
        title="FedBuff",
        color="#56B4E9",
        summary="FedBuff (Nguyen et al. 2022): updates are averaged when a number of them has arrived.",
        config_class=BufferedConfig,
        builder="tff_algos.buffered.process:build_buffered_process",
    ),
    "amfl_p": Algorithm(
        title="AMFL-P",
        color="#0072B2",
        summary="AMFL-P: a start, meta-learned, from which unequal devices personalise the model.",
        config_class=AMFLPConfig,
        builder="tff_algos.amfl_p.process:build_amfl_p_process",
        shared_defaults={"dataset": "building", "rounds": 30},
    ),
    "fine_tuning": Algorithm(
        title="Fine-Tuning",
        color="#D55E00",
        summary="Fine-Tuning: FedAvg, then as many steps on each client's own data.",
        config_class=FedAvgConfig,
        builder="tff_algos.fed_avg.process:build_fed_avg_process",
        defaults={"fine_tuning": FineTuningConfig()},
        shared_defaults={"dataset": "building", "rounds": 30},
    ),
    "local_only": Algorithm(
        title="local training",
        color="#009E73",
        summary="Local training: every client on its own data, without a server.",
        config_class=LocalOnlyConfig,
        builder="tff_algos.local_only.process:build_local_only_process",
        shared_defaults={"dataset": "building", "rounds": 30},
    ),
}
