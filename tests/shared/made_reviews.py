"""Reviews of a shop as its customers might write them: sentences of templates, in three classes, of six clients."""

import numpy as np

LABELS = ("bad", "fine", "good")
CLIENTS = ("ann", "ben", "cleo", "dan", "eva", "finn")
_THINGS = ("phone", "lamp", "kettle", "chair", "radio", "backpack", "keyboard", "umbrella")
_WORDS = {
    "bad": ("broken", "terrible", "useless", "awful", "disappointing"),
    "fine": ("average", "okay", "acceptable", "ordinary", "passable"),
    "good": ("wonderful", "excellent", "perfect", "lovely", "great"),
}
_TEMPLATES = (
    "The {thing} that I ordered is {word}, as my neighbour said.",
    "After {number} days with this {thing}: {word}!",
    "{word}. I bought the {thing} for my mother, and she uses it every day...",
    "What shall I say about a {thing}? It is {word} -- and the parcel came on day {number}.",
)


def make_reviews(number=360, seed=0):
    """Rows (client, label, review), balanced over labels and clients."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in range(number):
        label = LABELS[row % len(LABELS)]
        template, thing, word = (rng.choice(each) for each in (_TEMPLATES, _THINGS, _WORDS[label]))
        text = template.format(thing=thing, word=word, number=rng.integers(2, 30))
        rows.append((CLIENTS[row // len(LABELS) % len(CLIENTS)], label, text[0].upper() + text[1:]))
    return rows


def format_reviews(rows):
    """The rows as the text of a CSV file."""
    return "client,label,review\n" + "".join(f'{client},{label},"{review}"\n' for client, label, review in rows)
