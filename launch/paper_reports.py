"""The papers whose results `launch.report` compares with ours: a row each. Imports no TensorFlow."""

from launch.fedsikd_claims import FEDSIKD_CLAIMS
from launch.report_tables import PaperReport

REPORTS: dict[str, PaperReport] = {
    "fedsikd": PaperReport(
        title="FedSiKD: Tables V to IX",
        printed_files=("fedsikd_table_v.csv", "fedsikd_tables_vi_to_ix.csv"),
        setting_flag="dirichlet_alpha",
        algorithms={"FedSiKD": "fedsikd", "RandomCluster": "random_cluster", "FL+HC": "fl_hc", "FedAvg": "fedavg"},
        claims=FEDSIKD_CLAIMS,
        figure=("figure_3.png", "Figure 3: test accuracy by round, mean over seeds and one deviation either side"),
    ),
}
