"""What a model card says of a data set: what it is for, whose it is, on what terms, and what not to do with it.

The terms were read in November 2026. They are those of the data; a model that was trained on them may be bound by them.
"""

import typing

COMMERCIAL_USE = ("allowed", "not allowed", "unclear", "unknown")


class Terms(typing.NamedTuple):
    """The terms of a data set, in words for a model card.

    Attributes:
      task: what a model of it tells, as in "which digit (0 to 9) was written by hand"; "" where only its owner knows.
      source: who made it, when, and where it was published; "" likewise.
      licence: its name and who says so.
      commercial_use: one of `COMMERCIAL_USE`. "unclear": the sources contradict each other, or name no licence.
        "unknown": nobody has told this project.
      conditions: what its use takes, or why its terms are unclear; a sentence or more, or nothing.
      not_for: what a model of it must not be used for, a sentence each.
    """

    task: str = ""
    source: str = ""
    licence: str = "unknown"
    commercial_use: str = "unknown"
    conditions: str = ""
    not_for: tuple[str, ...] = ("Whatever the owner of the data does not allow.",)


UNKNOWN = Terms()
DIGITS = Terms(
    task="which digit (0 to 9) was written by hand, from a grey image of 8x8",
    source="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998",
    licence="CC BY 4.0, on its UCI page",
    commercial_use="allowed",
    conditions="Name the source.",
    not_for=("Reading amounts, addresses or forms where a wrong digit does harm: these are digits of 43 people.",),
)
MNIST = Terms(
    task="which digit (0 to 9) was written by hand, from a grey image of 28x28",
    source="LeCun, Cortes and Burges, The MNIST database of handwritten digits, 1998",
    licence="none on its authors' page; CC BY-SA 3.0 according to Keras's documentation",
    commercial_use="unclear",
    conditions="CC BY-SA allows commercial use if the source is named and what is derived is shared alike.",
    not_for=("Reading amounts, addresses or forms where a wrong digit does harm.",),
)
FASHION_MNIST = Terms(
    task="which of ten kinds of clothes a grey image of 28x28 shows",
    source="Xiao, Rasul and Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning "
    "Algorithms, 2017",
    licence="MIT, in its authors' repository",
    commercial_use="allowed",
    conditions="Keep the licence's notice.",
    not_for=("Photographs as people take them: these are small, grey, centred images of one shop's goods.",),
)
CIFAR10 = Terms(
    task="which of ten things (animals and vehicles) a colour image of 32x32 shows",
    source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    licence="none named by its author; the images were collected from the web and belong to others",
    commercial_use="unclear",
    conditions="Cite its author. Tiny Images, which it was taken from, was withdrawn by its makers in 2020.",
    not_for=("Surveillance, driving, or anything else where mistaking what is seen does harm.",),
)
CIFAR100 = CIFAR10._replace(task="which of a hundred things a colour image of 32x32 shows")
HAR = Terms(
    task="which of six activities a person does, from the motion sensors of a phone at the waist",
    source="Anguita, Ghio, Oneto, Parra and Reyes-Ortiz, A Public Domain Dataset for Human Activity Recognition Using "
    "Smartphones, ESANN 2013",
    licence="its authors' README allows no commercial use; its UCI page says CC BY 4.0",
    commercial_use="not allowed",
    conditions="Cite its authors. The stricter of the two terms is taken here.",
    not_for=(
        "Medical purposes, fall detection, or watching people who did not agree.",
        "Phones that are worn elsewhere than at the waist: 30 volunteers of 19 to 48 years wore them there.",
    ),
)
BUILDING = Terms(
    task="which of four levels of occupancy a room has, from its temperature and humidity",
    source="simulated by this project (datasets/building)",
    licence="Apache-2.0, as this project's",
    commercial_use="allowed",
    conditions="Keep the licence's notice.",
    not_for=("Real buildings: no reading of a real sensor is in it.",),
)
OCCUPANCY = Terms(
    task="whether an office is occupied, from its climate sensors",
    source="Candanedo and Feldheim, Accurate occupancy detection of an office room, Energy and Buildings 112, 2016; "
    "UCI Machine Learning Repository, data set 357",
    licence="CC BY 4.0, on its UCI page",
    commercial_use="allowed",
    conditions="Name the source.",
    not_for=(
        "Watching employees, or anything that safety depends on.",
        "Other rooms without new data: these are readings of one office.",
    ),
)
SHAKESPEARE = Terms(
    task="which character comes next in the speeches of Shakespeare's plays",
    source="The Complete Works of William Shakespeare, by speaking role as LEAF cut them (Caldas et al., LEAF: A "
    "Benchmark for Federated Settings, 2018)",
    licence="the plays are in the public domain; LEAF's code has a BSD licence, TFF names none for its file",
    commercial_use="allowed",
    conditions="Name the source.",
    not_for=("Writing today's English: these are plays of about 1600.",),
)
EMNIST = Terms(
    task="which character was written by hand, from a grey image of 28x28",
    source="Cohen, Afshar, Tapson and van Schaik, EMNIST: an extension of MNIST to handwritten letters, 2017, by "
    "writer as LEAF cut it (Caldas et al., 2018)",
    licence="none named by its authors; it derives from NIST Special Database 19, a work of the US government",
    commercial_use="unclear",
    conditions="Cite its authors.",
    not_for=("Reading amounts, addresses or forms where a wrong character does harm.",),
)
STACKOVERFLOW = Terms(
    task="which word comes next in a question or an answer of Stack Overflow, or which tags its question has",
    source="Stack Overflow, by user as the authors of TensorFlow Federated cut it, 2019",
    licence="CC BY-SA 3.0, according to TensorFlow Federated's documentation",
    commercial_use="allowed",
    conditions="Name the source, and share alike what is derived from the texts.",
    not_for=("Finding out who wrote something: the texts are of people.",),
)
CELEBA = Terms(
    task="whether a celebrity smiles in a photograph",
    source="Liu, Luo, Wang and Tang, Deep Learning Face Attributes in the Wild, 2015, by person as LEAF cut it",
    licence="its authors' agreement: for research that is not commercial",
    commercial_use="not allowed",
    conditions="Cite its authors; do not publish or pass on the images.",
    not_for=(
        "Recognising people, or judging their feelings, character or group.",
        "Faces of people in general: these are photographs of celebrities, labelled by what raters saw.",
    ),
)
