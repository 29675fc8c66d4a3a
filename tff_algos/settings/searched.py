"""What trials vary of the settings that many algorithms share. Imports no TensorFlow.

`SEARCHED` in the `config.py` of an algorithm has what its paper turns on, at most four settings that vary, of which two
are choices of three values or fewer: six trials could not tell more apart. How much clients train in a round is not
among them, since all methods of a comparison have the same. Each range holds the setting's default.
"""

from collections.abc import Mapping

# What trials on validation examples have chosen (docs/results/tuning) lies inside. With Adam: 0.0003 to
# 0.001 on Shakespeare and HAR, 0.004 on MNIST. With SGD: 0.01 for local training on HAR, 0.03 to 0.3 elsewhere; at 1
# most methods diverge, but not FedSiKD, whose label weight makes its steps smaller. A list for one optimizer is read as
# the other's where a run has that.
ADAM_RATES, SGD_RATES = "log(0.0002,0.02)", "log(0.005,1.0)"
LOCAL_RATES: Mapping[str, str] = {"adam": ADAM_RATES, "sgd": SGD_RATES}
# 0.9 was chosen over 0 on most data, by FedAvg, SCAFFOLD, FedNova and the oracle, and 0.5 over 0 with slow devices.
SERVER_MOMENTUM = "float(0,0.9)"
# Of the steps on a client's own data at the end, of plain SGD: 0.02 was chosen six times, 0.1 three times.
FINE_TUNING_RATES = "log(0.005,0.2)"
