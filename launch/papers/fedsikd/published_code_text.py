"""What the page on the replay of FedSiKD's published scripts says in words; the numbers come from elsewhere."""

INTRODUCTION = """# FedSiKD's published code, replayed

The scripts in the repository of the paper's authors (github.com/SimuEnv/FedSiKD, commit 7e47aa4, February 2024) carry
out another procedure than the paper's text describes, as we read them. Here that procedure is written anew from notes
on what they do, with our models and our local training; the scripts themselves were not run. It stands beside the rows
that the paper prints for rounds 1 to 5, and FedAvg of all clients stands beside all of them. That these scripts made
the printed tables is inference, see [below](#what-is-inference). A *split* is one random deal of the training examples
to the 40 clients."""

DONE = """## What is replayed

| printed row | what the scripts do | here |
|---|---|---|
| FedAvg | client 0 trains from the global weights (MNIST: 8 epochs), and its model becomes the global one; the \
students of the others do not enter | `client_0`: the student model on the examples of client 0 alone, round by round |
| FedSiKD, RandomCluster | one procedure on other splits: positions in the list of clients form the clusters, the \
second client of each trains the teacher (MNIST 10 epochs, HAR 7), and the average of a cluster of n clients is (the \
teacher before + (n - 1) x the leader's trained teacher) / n; students never enter | `leaders`: the plain mean of four \
such averages, each of n = 10; what is tested is that teacher |
| FL+HC | the global weights are not updated after round 0, and weights are added twice | `fl_hc`, [one \
reading](#flhc) of several: in every round all 40 clients train the student from the first weights, with the epochs of \
`client_0`; what is tested is twice the mean of theirs, by examples |
| none | | `fedavg`: all 40 clients train the student, with the epochs of `client_0`, and count by their examples |

All of them: 40 clients; every train example is drawn to a client by the shares of its label, which are Dirichlet(alpha)
over the clients; batches of 32, which Keras takes where the scripts hand none over; Adam at 0.001, our choice;
cross-entropy of softmax outputs; the networks of Tables III and IV; HAR as windows (128, 9). Tested after each round:
the global model on the whole test set. Split s has the same clients in all arms."""

INFERENCE = """## What is inference

- That exactly this version of the code made the printed tables. Nothing that we know of says so; only the authors can
  tell. What speaks for it is below, and so is what does not fit. Nothing here says that a printed number is wrong.
- HAR's "FedAvg": our notes describe MNIST's script alone. We take the same procedure, with 5 epochs, half way between
  HAR's 7 and 3; MNIST's 8 lies half way between the teacher's 10 and the students' 6.
- That client 0 trains the student model. Our notes say that each round is its own model and that the other clients
  distil students. So its model may be a teacher.
- Adam at 0.001: our notes name no optimizer. That four clusters of ten start from the same global teacher, that their
  plain mean counts, and that this teacher is tested, is our reading, too.
- Our notes say that the statistics of MNIST are taken from augmented images, but not whether clients train on such. We
  train on the plain ones. Augmented ones could keep the test loss lower.
- Adam starts afresh in each round. First weights are drawn as Keras does by default. MNIST's pixels are scaled to 0..1,
  HAR's windows are left as they are. HAR has 40 clients in four clusters, too. A client without examples leaves the
  weights as they were.
- Softmax outputs: Keras takes the cross-entropy from the logits under a softmax layer, and so do we. The printed losses
  agree: some exceed 16.1, where a cross-entropy of probabilities that are clipped at 1e-7 ends."""

READING = """## How to read a range

A range goes from the least to the greatest of the splits. If the printed value were one more split of the same
procedure, it would lie outside of a range of ten with probability 2/11, about one time in five, and outside of a range
of three with probability 1/2. So "inside" is weak evidence for the procedure, since the ranges are wide at small
alphas, and a single "outside" is weak evidence against it. Level, change and loss of a row come from the same runs and
are not independent, nor are the rows of FedSiKD and RandomCluster, which share their ranges. That changes how far the
counts of misses may stray by chance, not what is expected of them."""

UNITS = """## Every printed row as one unit, misses first

Level: mean accuracy (%) of rounds 1 to 5. Change: accuracy of round 5 minus that of round 1, in points. Loss: that of
round 5 minus that of round 1. Beside each printed value the range of the splits, and in brackets by how much the
printed value lies outside, if by more than its rounding. Misses: how many of the three lie outside of the replay's
range. Splits: those of the replay and of FedAvg of all clients."""

COUNTS = """## How often the printed value lies within the range

Of the values of single rounds, four alphas and five rounds a row. In brackets: within the range of FedAvg of all
clients, which has fewer splits, and so a narrower one. Further splits of the same procedure would lie within in 16.4
of 20 cases, and in 10 of 20 where there are three splits."""

PAIRS = """## FedSiKD and RandomCluster: one procedure, two splits

If both rows come from this procedure, they differ as two of its splits do. Level of FedSiKD minus that of RandomCluster
as printed, the greatest difference between two splits here, and the share of all pairs of splits that differ by at
least as much as the printed rows do. A small share speaks against it; since the ranges are wide, others are weak
evidence for it."""

ON_FL_HC = """## FL+HC

Our notes do not say whose weights are added, nor what is tested, so there is no one procedure to carry out. The
reading here: every round starts from the same global weights, and the mean of all clients is added twice; clusters do
not enter. Then a row has no trend over the rounds and moves by chance alone. Where all layers are linear, as in
MNIST's network, twice the weights of each of five layers are about 32 times the logits, so that the losses are high
for the accuracies. The reading was fixed before it was computed. But we knew that the accuracies of FedAvg's first
round are not far from the printed ones, so that their agreement counts for less than that of the losses."""

ROUND_BY_ROUND = """## Round by round

Each cell: printed (least / median / greatest of the splits). **Bold**: the printed value lies outside."""

COMMANDS = """## Made with

```sh
python -m launch.published_code --page=docs/results/fedsikd_published_code.md
```

It needs MNIST and HAR ([data sets](../data_sets.md)). It computes what is missing from the CSV file of the numbers,
`launch/papers/fedsikd/published_code.csv`, and goes on where it was stopped. With `--notrain` it only makes the page.
CPU time of one core, training and tests:"""
