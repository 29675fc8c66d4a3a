// SHA-256 (FIPS 180-4). Browsers have one only where a page came by TLS or from its own machine, and live rounds go
// without, too.

const WORDS = 64;
const [START, CONSTANTS] = makeConstants();

// The digest of parts one after another, each an ArrayBuffer or a view of one, as 64 hex digits.
export function sha256(...parts) {
  const state = Int32Array.from(START);
  const words = new Int32Array(WORDS);
  const block = new Uint8Array(64);
  let [filled, total] = [0, 0];
  for (const part of parts) {
    const bytes = ArrayBuffer.isView(part)
      ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength)
      : new Uint8Array(part);
    total += bytes.length;
    let place = 0;
    if (filled) {
      place = Math.min(64 - filled, bytes.length);
      block.set(bytes.subarray(0, place), filled);
      filled += place;
      if (filled < 64) continue;
      mix(state, words, block, 0);
    }
    for (; place + 64 <= bytes.length; place += 64) mix(state, words, bytes, place);
    block.set(bytes.subarray(place));
    filled = bytes.length - place;
  }
  const end = new Uint8Array(filled < 56 ? 64 : 128);
  end.set(block.subarray(0, filled));
  end[filled] = 0x80;
  const view = new DataView(end.buffer);
  view.setUint32(end.length - 8, Math.floor(total / 2 ** 29)); // the length in bits
  view.setUint32(end.length - 4, total << 3);
  for (let place = 0; place < end.length; place += 64) mix(state, words, end, place);
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

// Takes 64 bytes into the state, by the names of the standard.
function mix(state, w, bytes, place) {
  for (let t = 0, i = place; t < 16; t++, i += 4) {
    w[t] = (bytes[i] << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) | bytes[i + 3];
  }
  for (let t = 16; t < WORDS; t++) {
    const [x, y] = [w[t - 15], w[t - 2]];
    const small0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
    const small1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
    w[t] = (w[t - 16] + small0 + w[t - 7] + small1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let t = 0; t < WORDS; t++) {
    const big1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const t1 = (h + big1 + ((e & f) ^ (~e & g)) + CONSTANTS[t] + w[t]) | 0;
    const big0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const t2 = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

function turn(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

// The first 32 bits of the fractions of the square roots of the first 8 primes, and of the cube roots of the first 64,
// by whole numbers, since a browser's Math.cbrt need not be exact.
function makeConstants() {
  const primes = [];
  for (let n = 2; primes.length < WORDS; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const fraction = (prime, power) => {
    const wanted = BigInt(prime) << BigInt(32 * power);
    let root = 0n;
    for (let bit = 1n << 36n; bit; bit >>= 1n) if ((root + bit) ** BigInt(power) <= wanted) root += bit;
    return Number(root & 0xffffffffn);
  };
  return [
    primes.slice(0, 8).map((prime) => fraction(prime, 2)),
    Int32Array.from(primes, (prime) => fraction(prime, 3) | 0),
  ];
}
