// Pixels of a picture as a run's examples have them: grey or coloured, of its size and range.

const GREY = [19595, 38470, 7471]; // of 65536: parts of red, green and blue, as Pillow has them (ITU-R 601)

const ONE = 2 ** 22; // Pillow's shares of pixels are whole numbers of this

// The stored values, height * width * channels, of width * height pixels of four bytes. The whole picture is scaled, as
// the suite scales images, by triangles as wide as the step. `image` is that of the description.
export function storePixels(rgba, width, height, image) {
  const { channels, low, high, isWhole } = image;
  const bytes = channels === 1 ? mixGrey(rgba, width * height) : dropAlpha(rgba, width * height);
  const across = scaleRows(bytes, width, height, channels, image.width);
  const turned = turn(across, image.width, height, channels);
  const down = scaleRows(turned, height, image.width, channels, image.height);
  return Float32Array.from(turn(down, image.height, image.width, channels), (byte) => {
    const value = low + ((high - low) * byte) / 255;
    return isWhole ? Math.round(value) : value;
  });
}

// Whether the edges of a grey picture are nearer to a run's ink than to its paper: dark on light, not light on dark.
export function looksTurned(stored, { width, height, channels, paper, ink }) {
  if (channels !== 1) return false;
  const edge = [...stored.slice(0, width), ...stored.slice((height - 1) * width)];
  const mean = edge.reduce((sum, value) => sum + value, 0) / edge.length;
  return Math.abs(mean - ink[0]) < Math.abs(mean - paper);
}

function mixGrey(rgba, size) {
  const grey = new Uint8ClampedArray(size);
  for (let i = 0; i < size; i++) {
    grey[i] = (GREY[0] * rgba[4 * i] + GREY[1] * rgba[4 * i + 1] + GREY[2] * rgba[4 * i + 2] + 0x8000) >> 16;
  }
  return grey;
}

function dropAlpha(rgba, size) {
  const bytes = new Uint8ClampedArray(3 * size);
  for (let i = 0; i < size; i++)
    for (let channel = 0; channel < 3; channel++) bytes[3 * i + channel] = rgba[4 * i + channel];
  return bytes;
}

// Each row of `width` pixels as one of `wanted`; rounded to whole numbers, as Pillow's bilinear resizing does.
function scaleRows(bytes, width, height, channels, wanted) {
  if (width === wanted) return bytes;
  const step = width / wanted;
  const support = Math.max(step, 1);
  const scaled = new Uint8ClampedArray(wanted * height * channels);
  for (let column = 0; column < wanted; column++) {
    const centre = (column + 0.5) * step;
    const first = Math.max(0, Math.floor(centre - support + 0.5));
    const end = Math.min(width, Math.floor(centre + support + 0.5));
    const heights = Array.from({ length: end - first }, (_, i) =>
      Math.max(0, 1 - Math.abs(first + i - centre + 0.5) / support),
    );
    const total = heights.reduce((sum, each) => sum + each, 0);
    const shares = heights.map((each) => Math.round((each / total) * ONE));
    for (let row = 0; row < height; row++) {
      for (let channel = 0; channel < channels; channel++) {
        let sum = ONE / 2;
        shares.forEach((share, i) => (sum += share * bytes[(row * width + first + i) * channels + channel]));
        scaled[(row * wanted + column) * channels + channel] = Math.floor(sum / ONE);
      }
    }
  }
  return scaled;
}

// Rows to columns.
function turn(bytes, width, height, channels) {
  const turned = new Uint8ClampedArray(bytes.length);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      for (let channel = 0; channel < channels; channel++) {
        turned[(column * height + row) * channels + channel] = bytes[(row * width + column) * channels + channel];
      }
    }
  }
  return turned;
}
