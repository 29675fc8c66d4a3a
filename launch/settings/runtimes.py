"""The names of what runs the computations, and of what it computes on, as flags spell them."""

IN_PROCESS = "in_process"
TFF = "tff"
RAY = "ray"
RUNTIMES = (IN_PROCESS, TFF, RAY)  # the default first

CPU, GPU, AUTO = DEVICES = ("cpu", "gpu", "auto")
CPU_ONLY = (TFF, RAY)  # TFF's worker is built without a GPU, and on Ray none was tried

RAY_SHARES = 16
RAY_PLACES = ("", "local", "auto")  # beside addresses; the first two mean one of the run's own
RAY_CLIENT = "ray://"  # before an address: through Ray's client server

ON, OFF = "on", "off"
COMPILATIONS = (AUTO, ON, OFF)
