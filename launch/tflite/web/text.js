// Text and the tokens of a model: characters, words, or plain numbers where nobody said what the tokens mean.
// Nothing here knows of the page.

const SPECIAL = { padding: "<pad>", unknown: "<oov>", begin: "<bos>", end: "<eos>" };
const ESCAPES = { "\\n": "\n", "\\r": "\r", "\\t": "\t" };

export class Vocabulary {
  // `names` are the texts of the tokens by their number; null where there are none. `unknown` is the data set's own
  // number for what is in no vocabulary, or null.
  constructor(names, size, unknown) {
    this.size = size;
    this.names = names;
    this.special = Object.fromEntries(Object.entries(SPECIAL).map(([what, name]) => [what, names ? names.indexOf(name) : -1]));
    if (this.special.unknown < 0) this.special.unknown = unknown ?? -1;
    const specials = new Set(Object.values(this.special));
    this.texts = names ? names.map((name) => ESCAPES[name] ?? name) : null;
    const plain = names ? this.texts.filter((_, id) => !specials.has(id)) : [];
    this.form = !names ? "numbers" : plain.every((text) => Array.from(text).length === 1) ? "characters" : "words";
    this.ids = new Map(this.texts ? this.texts.map((text, id) => [text, id]).filter(([, id]) => !specials.has(id)) : []);
  }

  // The tokens of a text, and the parts of it that are in no vocabulary.
  encode(text) {
    const parts = this.form === "characters" ? Array.from(text) : text.split(/\s+/).filter(Boolean);
    const tokens = parts.map((part) => this.find(part));
    return {
      tokens: tokens.map((token) => token ?? this.special.unknown).filter((token) => token >= 0),
      unknown: [...new Set(parts.filter((_, i) => tokens[i] === undefined))],
    };
  }

  find(part) {
    if (this.form === "numbers") return /^\d+$/.test(part) && Number(part) < this.size ? Number(part) : undefined;
    return this.ids.get(part) ?? this.ids.get(part.toLowerCase());
  }

  // The text of tokens, without the marks of padding, beginning and end.
  decode(tokens) {
    const { padding, begin, end } = this.special;
    const kept = Array.from(tokens).filter((token) => ![padding, begin, end].includes(token));
    return kept.map((token) => (this.texts ? this.texts[token] : String(token))).join(this.form === "characters" ? "" : " ");
  }

  // A text with one token more.
  append(text, token) {
    const added = this.texts ? this.texts[token] : String(token);
    return this.form === "characters" || !text || /\s$/.test(text) ? text + added : `${text} ${added}`;
  }

  // Whether a token says that a line is at its end.
  endsLine(token) {
    return token === this.special.end || (this.form === "characters" && this.texts[token] === "\n");
  }

  // The tokens that are no text that could follow.
  listForbidden() {
    return [this.special.padding, this.special.unknown, this.special.begin].filter((token) => token >= 0);
  }
}

// What the model is given, and where its answer is read: the mark of the beginning and the tokens, of more than fit the
// last ones, with padding after them. null without any token.
export function fillPositions(tokens, positions, padding, begin) {
  const all = begin >= 0 ? [begin, ...tokens] : tokens;
  if (!all.length) return null;
  const shown = all.slice(-positions);
  const values = new Int32Array(positions).fill(Math.max(padding, 0));
  values.set(shown);
  return { values, last: shown.length - 1 };
}

// The logits of one position.
export function takePosition(outputs, position, size) {
  return outputs.slice(position * size, (position + 1) * size);
}

// The likeliest token that is not forbidden, or, with `draw` in [0, 1), one by its share among them.
export function chooseToken(shares, forbidden, draw = null) {
  const allowed = Array.from(shares, (share, token) => (forbidden.includes(token) ? 0 : share));
  const best = allowed.reduce((most, share, token) => (share > allowed[most] ? token : most), 0);
  if (draw === null) return best;
  let left = draw * allowed.reduce((sum, share) => sum + share, 0);
  for (let token = 0; token < allowed.length; token++) {
    left -= allowed[token];
    if (left < 0) return token;
  }
  return best; // rounding
}

// How many tokens are right and how many are the report's; what is padding in truth does not count.
export function countTokens(found, truths, reported, padding) {
  const counts = { total: 0, correct: 0, agreeing: 0 };
  truths.forEach((truth, i) => {
    if (truth < 0 || truth === padding) return;
    counts.total += 1;
    counts.correct += found[i] === truth;
    counts.agreeing += found[i] === reported[i];
  });
  return counts;
}
