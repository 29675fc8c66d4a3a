// Texts and numbers in messages, written as `join.py` writes them, so that a person is told the same in both.

// What Python's `strip` takes off: without U+FEFF, which `trim` takes, and with the separators of old tables.
const BLANKS = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const AROUND = new RegExp(`^${BLANKS}|${BLANKS}$`, "g");
const HIDDEN = /(?! )[\p{C}\p{Z}]/gu;
const NAMED = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const CUTOFF = 0.6; // of likeness, below which nothing is suggested
const MOST_NAMES = 12;

export function strip(text) {
  // Few texts have any, and looking at both ends is quicker.
  if (isPlain(text.charCodeAt(0)) && isPlain(text.charCodeAt(text.length - 1))) return text;
  return text.replace(AROUND, "");
}

function isPlain(code) {
  return code > 0x20 && code < 0x80;
}

// Python's repr of a text.
export function quote(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return mark + escaped.replace(HIDDEN, (each) => NAMED[each] ?? escapeHidden(each.codePointAt(0))) + mark;
}

function escapeHidden(code) {
  const [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(width, "0")}`;
}

// The first characters of a text; none is cut in two.
export function shorten(text, most) {
  return text.length <= most
    ? text
    : Array.from(text.slice(0, 2 * most))
        .slice(0, most)
        .join("");
}

// A text to be shown, in which nothing changes the direction or the line.
export function makePrintable(text) {
  return text.replace(HIDDEN, "?");
}

export function formatCount(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function countRows(number) {
  return number === 1 ? "1 row" : `${formatCount(number)} rows`;
}

export function listNames(names) {
  const more = names.length > MOST_NAMES ? ` and ${formatCount(names.length - MOST_NAMES)} more` : "";
  return names.slice(0, MOST_NAMES).join(", ") + more;
}

// The name that a text may have meant, as the end of a line; "" if none is near.
export function suggest(text, names) {
  const wanted = Array.from(text.toLowerCase());
  const lowered = new Map(names.map((name) => [name.toLowerCase(), name]));
  let best = null;
  for (const candidate of lowered.keys()) {
    const likeness = measureLikeness(Array.from(candidate), wanted);
    if (likeness < CUTOFF || (best && likeness < best.likeness)) continue;
    if (!best || likeness > best.likeness || isAfter(candidate, best.candidate)) best = { likeness, candidate };
  }
  return best ? `; did you mean ${lowered.get(best.candidate)}?` : "";
}

function isAfter(text, other) {
  const [first, second] = [Array.from(text), Array.from(other)].map((each) => each.map((part) => part.codePointAt(0)));
  const place = first.findIndex((code, i) => code !== second[i]);
  return place >= 0 && (place >= second.length || first[place] > second[place]);
}

// The ratio of `difflib.SequenceMatcher`: twice the characters in common, in order, over all.
export function measureLikeness(first, second) {
  const total = first.length + second.length;
  if ((2 * Math.min(first.length, second.length)) / total < CUTOFF) return 0; // the ratio is no higher
  return total ? (2 * countMatches(first, second)) / total : 1;
}

function countMatches(first, second) {
  const places = listPlaces(second);
  const waiting = [[0, first.length, 0, second.length]];
  let matched = 0;
  while (waiting.length) {
    const [from, to, otherFrom, otherTo] = waiting.pop();
    const [at, otherAt, size] = findLongestMatch(first, second, places, from, to, otherFrom, otherTo);
    if (!size) continue;
    matched += size;
    waiting.push([from, at, otherFrom, otherAt], [at + size, to, otherAt + size, otherTo]);
  }
  return matched;
}

// Where each character stands; in long texts none of those that are common, as difflib has it.
function listPlaces(characters) {
  const places = new Map();
  characters.forEach((each, i) => (places.has(each) ? places.get(each).push(i) : places.set(each, [i])));
  if (characters.length >= 200) {
    const most = Math.floor(characters.length / 100) + 1;
    for (const [each, found] of places) if (found.length > most) places.delete(each);
  }
  return places;
}

// [place in the first, place in the second, length] of the longest block in common, of equal ones the earliest.
function findLongestMatch(first, second, places, from, to, otherFrom, otherTo) {
  let [best, otherBest, size] = [from, otherFrom, 0];
  let lengths = new Map(); // of the blocks that end at a place of the second
  for (let i = from; i < to; i++) {
    const longer = new Map();
    for (const j of places.get(first[i]) ?? []) {
      if (j < otherFrom) continue;
      if (j >= otherTo) break;
      const length = (lengths.get(j - 1) ?? 0) + 1;
      longer.set(j, length);
      if (length > size) [best, otherBest, size] = [i - length + 1, j - length + 1, length];
    }
    lengths = longer;
  }
  while (best > from && otherBest > otherFrom && first[best - 1] === second[otherBest - 1]) {
    [best, otherBest, size] = [best - 1, otherBest - 1, size + 1];
  }
  while (best + size < to && otherBest + size < otherTo && first[best + size] === second[otherBest + size]) size += 1;
  return [best, otherBest, size];
}
