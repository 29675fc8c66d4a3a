"""Many runs: which are left to do, on which cores, in which processes, and what is shown of them."""
