"""The settings whose runs must keep their bytes: small ones of every algorithm and of everything that changes a round.

A setting is a name and the flags of `launch.train`. Add one by a line; it must be known to the revision before, too.
Imports nothing heavy.
"""

# In a flag: the folder of the files that `compare_revisions.py` writes.
DATA_FOLDER = "{data}"
# One of its clients has features so large that its updates are not finite.
BROKEN_CLIENT = "broken_client.npz"
ROUNDS = 3
# Those that a resumed run goes on to.
MORE_ROUNDS = 5

SHARED = (f"--rounds={ROUNDS}", "--run_page=false")
IN_PROCESS, TFF = "--runtime=in_process", "--runtime=tff"
DIGITS = ("--num_clients=6", "--batch_size=32")
BUILDING = ("--dataset=building", "--building_num_sensors=6")
CNN10 = ("--model=image_cnn10", "--width=0.125")
PHONES = ("--device_profiles=phones",)


def _train(algo: str, *flags: str, part: str = "", steps: int = 4) -> tuple[str, ...]:
    """Flags of an algorithm whose clients take a few steps a round; flags that begin with "." are the algorithm's.

    Args:
      algo: its name.
      flags: the others; ".cohort_size=3" stands for "--fedavg_cohort_size=3".
      part: what comes before "steps" in the name of its flag.
      steps: of a client in a round; 0 leaves them to the algorithm.
    """
    own = (f".{part}steps={steps}", *flags) if steps else flags
    return (f"--algo={algo}", *(f"--{algo}_{flag[1:]}" if flag.startswith(".") else flag for flag in own))


def _fed_avg(*flags, **steps):
    return _train("fedavg", IN_PROCESS, *DIGITS, *flags, **steps)


def _fed_sikd(*flags, algo="fedsikd"):
    teacher = (".teacher_steps=4",)
    return _train(algo, IN_PROCESS, *DIGITS, ".num_clusters=2", *teacher, *flags, part="student_")


def _fl_hc(*flags):
    return _train("fl_hc", IN_PROCESS, *DIGITS, *flags)


def _fed_cd(*flags):
    return _train(
        "fedcd", IN_PROCESS, "--partition=dirichlet", *DIGITS, ".cohort_size=4", ".milestones=1,2", *flags, steps=3
    )


def _timed(algo, *flags):
    """One of the algorithms on a clock of events, whose clients' steps are its own."""
    return _train(algo, IN_PROCESS, *DIGITS, *flags)


def _amfl_p(*flags):
    return _train("amfl_p", IN_PROCESS, *BUILDING, *META_EVALUATION, *flags, steps=0)


def _fine_tuning(*flags):
    return _train("fine_tuning", IN_PROCESS, *BUILDING, *FINE_TUNED_EVALUATION, *flags, part="local_")


RARELY = "--rounds_per_evaluation=2"
META_EVALUATION = (RARELY, ".fine_tuning_steps=5")
FINE_TUNED_EVALUATION = (RARELY, ".steps=5")
EQUAL = ".client_weighting=equal"
PRIVATE = (".dp_epsilon=50", EQUAL)
BERNOULLI = (".cohort_size=3", ".participation=bernoulli")
PRIVATE_STATISTICS = (".dp_epsilon=80", ".privacy_epsilon=20", ".teacher=cluster")
NOISY = (".dp_delta=0.001", ".dp_noise_multiplier=0.8", ".dp_clip_norm=0.5")
ADAPTIVE = (
    ".dp_clipping=adaptive",
    ".dp_clip_quantile=0.8",
    ".dp_clip_learning_rate=0.3",
    ".dp_clip_count_noise=0.1",
)
EIGHT_BITS = (".compression_bits=8",)
STOCHASTIC = (*EIGHT_BITS, ".compression_rounding=stochastic")
QAT, LATER = "--quantize=qat", "--qat_start_round=2"
AGED = (".weighting=age_aware", ".gamma=0.8")
DECAY = (".learning_rate_decay=0.5", ".weight_decay=0.001", ".proximal_weight=0.05")
SGD = (".optimizer=sgd", ".momentum=0.9", ".learning_rate=0.03", *DECAY)
LOCAL_SGD = tuple(f".local_{flag[1:]}" for flag in SGD)
ADAM = (".optimizer=adam", ".learning_rate=0.002", *DECAY)

_FED_AVG = {
    "fedavg": _fed_avg(".epochs=1", steps=0),
    "fedavg_worker": _train("fedavg", TFF, *DIGITS),
    "fedavg_building": _train("fedavg", IN_PROCESS, *BUILDING),
    "fedavg_nearest": _fed_avg(*EIGHT_BITS),
    "fedavg_stochastic": _fed_avg(*STOCHASTIC),
    "fedavg_stochastic_worker": _train("fedavg", TFF, *DIGITS, *STOCHASTIC),
    "fedavg_cohort": _fed_avg(".cohort_size=3"),
    "fedavg_bernoulli": _fed_avg(*BERNOULLI),
    "fedavg_bernoulli_worker": _train("fedavg", TFF, *DIGITS, *BERNOULLI),
    "fedavg_equal": _fed_avg(EQUAL),
    "fedavg_server_rate": _fed_avg(".server_learning_rate=0.7"),
    "fedavg_everything": _fed_avg(EQUAL, *STOCHASTIC, *BERNOULLI, ".server_learning_rate=1.3"),
    "fedavg_proximal": _fed_avg(".proximal_weight=0.1"),
    "fedavg_sgd": _fed_avg(
        ".optimizer=sgd", ".momentum=0.9", ".learning_rate=0.05", ".weight_decay=0.001", ".learning_rate_steps=1"
    ),
    "fedavg_decay": _fed_avg(".learning_rate_decay=0.5"),
    "fedavg_private": _fed_avg(*PRIVATE),
    "fedavg_private_bernoulli": _fed_avg(*PRIVATE, *BERNOULLI),
    "fedavg_private_adaptive": _fed_avg(*PRIVATE, *BERNOULLI, ".dp_clipping=adaptive"),
    "fedavg_private_noisy": _fed_avg(*PRIVATE, *NOISY, *ADAPTIVE),
    "fedavg_budget_spent": _fed_avg(".dp_epsilon=8", EQUAL, ".dp_noise_multiplier=1"),
    "fedavg_private_nearest": _fed_avg(*PRIVATE, *EIGHT_BITS),
    "fedavg_private_stochastic_worker": _train(
        "fedavg", TFF, *DIGITS, *PRIVATE, *BERNOULLI, *STOCHASTIC, ".dp_clipping=adaptive"
    ),
    "fedavg_qat": _fed_avg(QAT),
    "fedavg_qat_later": _fed_avg(QAT, LATER),
    "fedavg_qat_stochastic": _fed_avg(QAT, LATER, *STOCHASTIC),
    "fedavg_batch_norm": _fed_avg(*CNN10),
    "fedavg_batch_norm_stochastic": _fed_avg(*CNN10, *STOCHASTIC, "--augment=crop_flip"),
    "fedavg_bfloat16": _fed_avg("--precision=bfloat16"),
    "fedavg_phones": _fed_avg(*PHONES, ".cohort_size=3", "--fairness"),
    "fedavg_new_clients": _fed_avg("--new_clients=2", "--keep_best", "--fairness"),
    "fedavg_shards": _fed_avg("--partition=shards", "--labels_per_client=4", "--rounds_per_evaluation=2"),
    "fedavg_broken_client": _train(
        "fedavg", IN_PROCESS, "--dataset=npz", f"--npz={DATA_FOLDER}/{BROKEN_CLIENT}", "--partition=natural"
    ),
}
_FED_SIKD = {
    "fedsikd": _fed_sikd(),
    "fedsikd_worker": _train(
        "fedsikd", TFF, *DIGITS, ".num_clusters=2", ".teacher=cluster", ".teacher_steps=4", part="student_"
    ),
    "fedsikd_cluster": _fed_sikd(".teacher=cluster"),
    "fedsikd_fastest": _fed_sikd(".leader=speed", ".statistics=per_feature"),
    "fedsikd_labels": _train("fedsikd", IN_PROCESS, *DIGITS, ".num_clusters=2", ".label_weight=1", part="student_"),
    "fedsikd_examples": _fed_sikd(".weighting=examples", ".teacher=cluster"),
    "fedsikd_chosen_number": _train(
        "fedsikd", IN_PROCESS, *DIGITS, ".num_clusters=0", ".max_clusters=3", part="student_"
    ),
    "fedsikd_probabilities": _fed_sikd(".distillation_inputs=probabilities", ".temperature_squared"),
    "fedsikd_proximal": _fed_sikd(".student_proximal_weight=0.1", ".teacher_proximal_weight=0.1"),
    "fedsikd_sgd": _fed_sikd(*(f".{part}_{flag[1:]}" for part in ("student", "teacher") for flag in SGD)),
    "fedsikd_private": _fed_sikd(*PRIVATE_STATISTICS),
    "fedsikd_private_adaptive": _fed_sikd(*PRIVATE_STATISTICS, ".dp_clipping=adaptive"),
    "fedsikd_private_labels": _train(
        "fedsikd", IN_PROCESS, *DIGITS, ".num_clusters=2", ".label_weight=1", *PRIVATE_STATISTICS[:2], part="student_"
    ),
    "fedsikd_qat": _fed_sikd(QAT),
    "fedsikd_qat_later": _fed_sikd(QAT, LATER, ".teacher=cluster"),
    "fedsikd_batch_norm": _fed_sikd(*CNN10, ".teacher=cluster"),
    "fedsikd_phones": _fed_sikd(*PHONES),
    "fedsikd_broken_client": _train(
        "fedsikd",
        IN_PROCESS,
        "--dataset=npz",
        f"--npz={DATA_FOLDER}/{BROKEN_CLIENT}",
        "--partition=natural",
        ".num_clusters=2",
        ".teacher=cluster",
        part="student_",
    ),
    "random_cluster": _fed_sikd(algo="random_cluster"),
    "random_cluster_equal": _fed_sikd(".cluster_sizes=equal", ".teacher=cluster", algo="random_cluster"),
    "random_cluster_examples": _fed_sikd(
        ".statistics=per_feature", ".weighting=examples", ".leader=speed", ".temperature_squared", algo="random_cluster"
    ),
}
_FL_HC = {
    "fl_hc": _fl_hc(),
    "fl_hc_worker": _train("fl_hc", TFF, *DIGITS),
    "fl_hc_equal": _fl_hc(".client_weighting=equal", ".clustering_round=2"),
    "fl_hc_number": _fl_hc(".distance_multiple=0", ".num_clusters=2"),
    "fl_hc_threshold": _fl_hc(".distance_multiple=0", ".distance_threshold=0.5"),
    "fl_hc_sgd": _fl_hc(*SGD),
    "fl_hc_qat_later": _fl_hc(QAT, LATER),
    "fl_hc_batch_norm": _fl_hc(*CNN10, ".proximal_weight=0.1"),
    "oracle": _train(
        "oracle", IN_PROCESS, "--clients_per_archetype=1", ".cohort_size=4", ".participation=stratified", steps=4
    ),
}
_CFL = {
    "cfl": _train("cfl", IN_PROCESS, *DIGITS, ".eps_1_multiple=0.9", "--new_clients=2"),
    "cfl_worker": _train("cfl", TFF, *DIGITS, EQUAL, ".eps_1_multiple=0.9", ".linkage=complete"),
    "cfl_absolute": _train("cfl", IN_PROCESS, *DIGITS, ".eps_1_multiple=0", ".eps_1=9", ".eps_2_multiple=0"),
    "cfl_stochastic": _train("cfl", IN_PROCESS, *DIGITS, *STOCHASTIC, ".aggregator=median"),
}
_IFCA = {
    "ifca": _train("ifca", IN_PROCESS, *DIGITS, ".cohort_size=4", "--new_clients=2"),
    "ifca_worker": _train("ifca", TFF, *DIGITS, EQUAL, ".dealt_rounds=1"),
    "ifca_gradients": _train("ifca", IN_PROCESS, *DIGITS, ".averaging=gradients", *SGD[:1], ".num_models=2", steps=1),
    "ifca_stochastic": _train("ifca", IN_PROCESS, *DIGITS, *STOCHASTIC, QAT, LATER),
}
_FED_CD = {
    "fedcd": _fed_cd(),
    "fedcd_worker": _train("fedcd", TFF, "--clients_per_archetype=1", ".cohort_size=4", ".milestones=1", steps=3),
    "fedcd_nearest": _fed_cd(*EIGHT_BITS),
    "fedcd_stochastic": _fed_cd(*STOCHASTIC),
    "fedcd_bernoulli": _fed_cd(".participation=bernoulli", ".weighting=equal"),
    "fedcd_anew": _fed_cd(".clone_schedule=anew", ".learning_rate_decay=0.5"),
    "fedcd_published": _fed_cd(
        ".clone_score=complement_of_accuracy",
        ".clone_history=complement",
        ".short_history=latest",
        ".deletion=below_mean",
        ".protected_models=1",
        ".normalize_after_deletion=false",
        ".late_round=2",
        ".late_score=0.5",
    ),
    "fedcd_private": _fed_cd(".dp_epsilon=80", ".weighting=equal"),
    "fedcd_private_adaptive_stochastic": _fed_cd(
        ".dp_epsilon=80", ".weighting=equal", ".participation=bernoulli", ".dp_clipping=adaptive", *STOCHASTIC
    ),
    "fedcd_sgd": _fed_cd(*SGD, ".score_rounds=1", ".score_noise=0.1"),
    "fedcd_qat": _fed_cd(QAT),
    "fedcd_qat_later": _fed_cd(QAT, LATER),
    "fedcd_batch_norm": _fed_cd(*CNN10, *EIGHT_BITS),
    "fedcd_phones": _fed_cd(*PHONES),
}
_TIMED = {
    "async_periodic": _timed("async_periodic"),
    "async_periodic_worker": _train("async_periodic", TFF, *DIGITS),
    "async_periodic_significance": _timed("async_periodic", ".scheduling=significance", ".max_scheduled=1"),
    "async_periodic_frequency": _timed("async_periodic", ".scheduling=frequency", ".max_scheduled=2", *AGED),
    "async_periodic_synchronous": _timed("async_periodic", ".waiting=synchronous", ".max_scheduled=2"),
    "async_periodic_all": _timed("async_periodic", ".averaged_devices=all", ".max_scheduled=1", ".dropout=0.3"),
    "async_periodic_by_label": _timed(
        "async_periodic", ".speed=by_label", ".availability_cycle_s=2", ".availability_share=0.5"
    ),
    "async_periodic_adam": _timed("async_periodic", *ADAM, ".speed=persistent", ".period_fraction=0.5"),
    "async_periodic_qat": _timed("async_periodic", QAT),
    "async_periodic_batch_norm": _timed("async_periodic", *CNN10),
    "async_periodic_phones": _timed("async_periodic", *PHONES, ".speed=profiles"),
    "fed_async": _timed("fed_async", ".updates_per_round=5"),
    "fed_async_hinge": _timed("fed_async", ".updates_per_round=5", ".staleness=hinge", ".staleness_grace=1"),
    "fed_async_adam": _timed(
        "fed_async", ".updates_per_round=5", *ADAM, ".speed=persistent", ".dropout=0.3", ".staleness=constant"
    ),
    "fed_async_batch_norm": _timed("fed_async", ".updates_per_round=5", *CNN10),
    "fed_async_qat": _timed("fed_async", ".updates_per_round=5", QAT),
    "fed_async_phones": _timed("fed_async", ".updates_per_round=5", *PHONES, ".speed=profiles"),
    "buffered": _timed("buffered"),
    "buffered_server_rate": _timed("buffered", ".server_learning_rate=0.5", ".buffer_size=2", ".staleness=constant"),
    "buffered_adam": _timed("buffered", *ADAM, ".speed=by_label", ".dropout=0.3", ".staleness=hinge"),
    "buffered_batch_norm": _timed("buffered", *CNN10),
    "buffered_qat": _timed("buffered", QAT),
    "buffered_phones": _timed("buffered", *PHONES, ".speed=profiles"),
}
_PERSONAL = {
    "amfl_p": _amfl_p(),
    "amfl_p_worker": _train("amfl_p", TFF, *BUILDING, *META_EVALUATION, steps=0),
    "amfl_p_digits": _train(
        "amfl_p",
        IN_PROCESS,
        "--dataset=digits",
        *DIGITS,
        *META_EVALUATION,
        ".support_size=16",
        ".query_size=16",
        steps=0,
    ),
    "amfl_p_first_order": _amfl_p(".first_order", ".inner_steps=2", ".weighting=resource"),
    "amfl_p_reptile": _amfl_p(".reptile", ".inner_steps=2", ".weighting=examples"),
    "amfl_p_fine_tuned_quality": _amfl_p(".quality_model=fine_tuned", ".fine_tuning_rule=resources"),
    "amfl_p_dynamic": _amfl_p(".resources=dynamic", ".resource_floor=0.3"),
    "amfl_p_sgd": _amfl_p(".server_optimizer=sgd", ".weighting=quality"),
    "amfl_p_momentum": _amfl_p(".server_optimizer=momentum", ".cohort_size=3"),
    "amfl_p_order": _amfl_p(".query_after_support", *BERNOULLI, ".weighting=equal"),
    "amfl_p_private": _amfl_p(".dp_epsilon=80", ".weighting=equal"),
    "amfl_p_private_adaptive": _amfl_p(".dp_epsilon=80", ".weighting=equal", ".dp_clipping=adaptive", *BERNOULLI),
    "amfl_p_same": _amfl_p(".fine_tuning_rule=same", ".fine_tuning_start=initial", ".min_resource=0.3"),
    "amfl_p_curve": _amfl_p(".fine_tuning_curve=0,2,5"),
    "amfl_p_phones": _amfl_p(*PHONES),
    "fine_tuning": _fine_tuning(),
    "fine_tuning_worker": _train("fine_tuning", TFF, *BUILDING, *FINE_TUNED_EVALUATION, part="local_"),
    "fine_tuning_steps": _fine_tuning(".rule=steps"),
    "fine_tuning_resources": _fine_tuning(".rule=resources", ".start=initial"),
    "fine_tuning_curve": _fine_tuning(".curve=0,2,5", "--new_clients=2"),
    "fine_tuning_private": _fine_tuning(*PRIVATE, *BERNOULLI),
    "fine_tuning_private_adaptive": _fine_tuning(*PRIVATE, ".dp_clipping=adaptive"),
    "fine_tuning_sgd": _fine_tuning(*LOCAL_SGD, ".server_learning_rate=0.7"),
    "fine_tuning_stochastic": _fine_tuning(*STOCHASTIC),
    "fine_tuning_qat": _fine_tuning(QAT),
    "partial": _train("partial", IN_PROCESS, *DIGITS),
    "partial_head_first": _train("partial", IN_PROCESS, *DIGITS, ".schedule=head_first", ".head_epochs=1"),
    "partial_batch_norm": _train("partial", IN_PROCESS, *DIGITS, *CNN10, ".personal=batch_norm"),
    "apfl": _train("apfl", IN_PROCESS, *DIGITS),
    "pfedme": _train("pfedme", IN_PROCESS, *DIGITS),
    "local_only": _train("local_only", IN_PROCESS, *BUILDING),
    "local_only_worker": _train("local_only", TFF, *BUILDING),
    "local_only_digits": _train("local_only", IN_PROCESS, "--dataset=digits", *DIGITS),
    "local_only_sgd": _train("local_only", IN_PROCESS, *BUILDING, *SGD),
    "fedproto": _train("fedproto", IN_PROCESS, *DIGITS),
    "moon": _train("moon", IN_PROCESS, *DIGITS, ".cohort_size=4", EQUAL),
    "moon_batch_norm": _train("moon", IN_PROCESS, *DIGITS, *CNN10, *STOCHASTIC, ".temperature=0.2"),
    "local_only_batch_norm": _train("local_only", IN_PROCESS, "--dataset=digits", *DIGITS, *CNN10),
}
SETTINGS = {
    name: (*flags, *SHARED)
    for name, flags in {**_FED_AVG, **_FED_SIKD, **_FL_HC, **_CFL, **_IFCA, **_FED_CD, **_TIMED, **_PERSONAL}.items()
}
