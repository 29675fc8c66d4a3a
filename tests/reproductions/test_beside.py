"""What papers print beside ours: each page's table, from tables made up by hand."""

from reproductions.amfl_p.tables import compare_printed as compare_amfl_p
from reproductions.async_periodic.tables import compare_printed as compare_async
from reproductions.engine.tables import Table
from reproductions.fedcd.tables import compare_printed as compare_fedcd
from reproductions.fedsikd.tables import compare_printed as compare_fedsikd


def test_amfl_p_has_a_row_a_measure_and_algorithm_and_none_where_nothing_is_measured():
    rows = [
        ["AMFL-P", "printed", "", "88.70", "30.00", "65.00"],
        ["AMFL-P", "ours, tuned", "15", "78.13 ± 3.05", "median 10", "55.23 ± 3.03"],
        ["FedAvg", "ours, tuned", "15", "57.80 ± 1.16", "> 50 in 15 of 15", "0.00 ± 0.00"],
        ["majority class", "data", "15", "40.18 ± 1.03", "", ""],
    ]
    columns = ["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"]
    table = compare_amfl_p({"table_1": Table(columns, rows)})
    assert table.columns == ["measure", "algorithm", "printed", "ours, tuned", "ours, paper's rates"]
    assert [row[:4] for row in table.rows] == [
        ["accuracy (%)", "AMFL-P", "88.70", "78.13 ± 3.05"],
        ["accuracy (%)", "FedAvg", "", "57.80 ± 1.16"],
        ["accuracy (%)", "majority class", "", "40.18 ± 1.03"],
        ["rounds to 75 %", "AMFL-P", "30.00", "median 10"],
        ["rounds to 75 %", "FedAvg", "", "> 50 in 15 of 15"],
        ["fine-tuning steps", "AMFL-P", "65.00", "55.23 ± 3.03"],
    ]


def test_fedcd_has_the_later_edition_and_the_sizes_that_train_as_the_authors():
    ratio = "FedCD's time over FedAvg's, real"
    columns = ["archetypes", "source", "rounds to convergence, FedCD", "FedAvg", ratio]
    rows = [
        ["hierarchical", "printed, edition of 8 figures", "44", "> 300", "0.6"],
        ["hierarchical", "printed, edition of 9 figures", "45", "> 300", "0.675"],
        ["hierarchical", "ours", "41, 34", "> 60, > 60", "< 1.26, < 1.50"],
    ]
    table = compare_fedcd({"authors_table_1": Table(columns, rows)})
    assert table.columns[2:] == ["printed", "medium, authors' training", "small, authors' training"]
    assert table.rows[:3] == [
        ["hierarchical", "rounds to convergence, FedCD", "45", "41, 34", ""],
        ["hierarchical", "rounds to convergence, FedAvg", "> 300", "> 60, > 60", ""],
        ["hierarchical", ratio, "0.675", "< 1.26, < 1.50", ""],
    ]
    assert [row[2:] for row in table.rows[3:]] == [["", "", ""]] * 3


def test_fedsikd_has_accuracies_in_per_cent_of_the_skewed_settings_at_round_5():
    columns = ["dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    columns += [f"{source}_{part}" for source in ("ours", "authors", "tuned") for part in ("mean", "deviation")]
    ours = ["0.85", "0.021", "", "", "0.8663", ""]
    places = [
        ["har", "0.1", "fedavg", "5", "test_accuracy"],
        ["mnist", "0.1", "fedavg", "5", "test_accuracy"],
        ["mnist", "0.1", "fedsikd", "5", "test_accuracy"],
        ["mnist", "0.1", "fedsikd", "4", "test_accuracy"],  # another round, metric, alpha
        ["mnist", "0.1", "fedsikd", "5", "test_loss"],
        ["mnist", "2", "fedsikd", "5", "test_accuracy"],
    ]
    table = compare_fedsikd({"tables": Table(columns, [[*place, "0.7483", *ours] for place in places])})
    assert table.rows == [
        ["MNIST, alpha 0.1", "FedSiKD", "74.83", "85.00 ± 2.10", "", "86.63"],
        ["MNIST, alpha 0.1", "FedAvg", "74.83", "85.00 ± 2.10", "", "86.63"],
        ["HAR features, alpha 0.1", "FedAvg", "74.83", "85.00 ± 2.10", "", "86.63"],
    ]


def test_asynchronous_fl_has_a_row_a_data_case_and_policy():
    rows = [
        ["IID", "random", "equal weights", "88.54"],
        ["IID", "random", "fresher favoured", "89.81"],
        ["IID", "random", "FedAvg", "87.53"],
        ["IID", "random", "FedAvg with Eq. (8)", "87.50"],
        ["IID", "none", "FedBuff", "90.99"],
        ["non-IID, slow devices with digits of their own", "random", "equal weights", "60.00"],
    ]
    table = compare_async({"results": Table(["data", "scheduling", "weights", "at equal time"], rows)})
    assert table.columns[2:] == [
        *("printed", "equal weights", "fresher favoured", "older favoured", "FedAvg, same scheduling")
    ]
    assert table.rows == [["IID", "random", "curves only", "88.54", "89.81", "", "87.53"]]
