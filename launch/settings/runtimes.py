"""The names of what runs the computations, and of what it computes on, as flags spell them."""

TFF = "tff"
IN_PROCESS = "in_process"
RUNTIMES = (TFF, IN_PROCESS)

CPU, GPU, AUTO = DEVICES = ("cpu", "gpu", "auto")
CPU_ONLY = (TFF,)  # TFF's worker is built without a GPU
