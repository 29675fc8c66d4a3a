// The words of a text and their tokens, as `datasets/tables/sentences.py` has them. Nothing here knows of the page.

const [PAD, UNKNOWN] = [0, 1];
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
export const HOLE = "\u25fb"; // stands for a word that is not in the vocabulary where tokens are shown as a text

// Runs of letters, digits and marks that begin with a letter or a digit, in lower case.
export function splitWords(text) {
  return text.normalize("NFC").toLowerCase().match(WORD) ?? [];
}

export class Words {
  // `vocabulary` is the text of each token by its number; the first two are padding and unknown words.
  constructor(vocabulary, positions) {
    this.vocabulary = vocabulary;
    this.positions = positions;
    this.ids = new Map(vocabulary.map((word, id) => [word, id]).slice(UNKNOWN + 1));
  }

  // The tokens that the model is given, how many words there are, and those that it does not know; null without a word.
  encode(text) {
    const words = text.split(HOLE).flatMap((part, i) => [...(i ? [HOLE] : []), ...splitWords(part)]);
    if (!words.length) return null;
    const values = new Int32Array(this.positions).fill(PAD);
    values.set(words.slice(0, this.positions).map((word) => this.ids.get(word) ?? UNKNOWN));
    const unknown = [...new Set(words.filter((word) => !this.ids.has(word)))];
    return { values, count: words.length, unknown };
  }

  // Tokens as a text that becomes them again.
  decode(tokens) {
    const shown = Array.from(tokens).filter((token) => token !== PAD);
    return shown.map((token) => (token === UNKNOWN ? HOLE : this.vocabulary[token])).join(" ");
  }
}
