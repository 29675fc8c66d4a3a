// A drawing to the picture that a model was trained on. A drawing is a list of strokes, a stroke a list of points
// [x, y], each from 0 to 1 over the drawing area. Nothing here knows of the page.

// The digits of the UCI set were scaled to 20 by 32 pixels in the middle of a bitmap of 32 by 32, with strokes made
// thicker or thinner. All ten classes have about 312 black pixels; a grey value counts those of a block of 4 by 4.
const DIGITS = { side: 32, box: [20, 32], block: 4, ink: 312, thinnest: 2, thickest: 14, stretch: 2 };
// MNIST's were scaled to fit 20 by 20 with their proportions kept, and moved by whole pixels until their centre of
// mass lay in the middle of 28 by 28, which is the point 14.5. A 1 is 2.9 pixels wide in the median.
const MNIST = { box: 20, block: 4, thickness: 2.9, middle: 14.5 };
// Where nothing is known of the pictures, the drawing stays where it is; strokes are a twelfth of the height.
const PLAIN = { block: 4, share: 1 / 12 };

const FRAMINGS = { digits: frameDigits, mnist: frameMnist, plain: framePlain };

// The share of each pixel that is covered with ink, height * width numbers from 0 to 1.
export function computeCoverage(strokes, picture) {
  return FRAMINGS[picture.framing](strokes, picture);
}

// Stored values of a picture, height * width * channels: `ink` (one value a channel) over `base`, or over paper.
export function drawPicture(strokes, picture, base, ink) {
  const { height, width, channels, paper } = picture;
  const values = base ? Float32Array.from(base) : new Float32Array(height * width * channels).fill(paper);
  if (!strokes.length) return values;
  const coverage = computeCoverage(strokes, picture);
  for (let i = 0; i < values.length; i++) {
    const share = coverage[Math.floor(i / channels)];
    const mixed = values[i] + (ink[i % channels] - values[i]) * share;
    values[i] = picture.isWhole ? Math.round(mixed) : mixed;
  }
  return values;
}

function frameDigits(strokes) {
  const { side, block, ink } = DIGITS;
  let [low, high] = [DIGITS.thinnest, DIGITS.thickest];
  for (let i = 0; i < 12; i++) {
    const thickness = (low + high) / 2;
    if (countInk(paintDigit(strokes, thickness)) < ink) low = thickness;
    else high = thickness;
  }
  return averageBlocks(paintDigit(strokes, high), side, side, block);
}

function paintDigit(strokes, thickness) {
  const { side, box, stretch } = DIGITS;
  const { width, height, x, y } = measure(strokes);
  let across = (box[0] - thickness) / width;
  let down = (box[1] - thickness) / height;
  // A straight 1 must not become a square, nor a dash a tower.
  [across, down] = [Math.min(across, stretch * down), Math.min(down, stretch * across)];
  const place = ([px, py]) => [side / 2 + (px - x) * across, side / 2 + (py - y) * down];
  return paint(strokes.map((stroke) => stroke.map(place)), thickness, side, side);
}

function frameMnist(strokes, { height, width }) {
  const { box, block, thickness, middle } = MNIST;
  const found = measure(strokes);
  const scale = (box - thickness) / Math.max(found.width, found.height);
  const place = ([px, py]) => [
    block * (width / 2 + (px - found.x) * scale),
    block * (height / 2 + (py - found.y) * scale),
  ];
  const placed = strokes.map((stroke) => stroke.map(place));
  const bitmap = paint(placed, block * thickness, block * width, block * height);
  const coverage = averageBlocks(bitmap, block * width, block * height, block);
  const [x, y] = findCentre(coverage, width);
  return move(coverage, width, Math.round(middle - x), Math.round(middle - y));
}

function framePlain(strokes, { height, width }) {
  const { block, share } = PLAIN;
  const placed = strokes.map((stroke) => stroke.map(([x, y]) => [x * width * block, y * height * block]));
  const bitmap = paint(placed, share * height * block, block * width, block * height);
  return averageBlocks(bitmap, block * width, block * height, block);
}

// The middle and the size of the rectangle around all points; a size is never 0, so that it can be divided by.
export function measure(strokes) {
  const points = strokes.flat();
  const [left, right] = findRange(points.map(([x]) => x));
  const [top, bottom] = findRange(points.map(([, y]) => y));
  const width = Math.max(right - left, 1e-6);
  const height = Math.max(bottom - top, 1e-6);
  return { width, height, x: (left + right) / 2, y: (top + bottom) / 2 };
}

export function findRange(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

// A bitmap of 0 and 1: the pixels whose middle is at most half of `thickness` from a stroke.
export function paint(strokes, thickness, width, height) {
  const bitmap = new Uint8Array(width * height);
  for (const stroke of strokes) {
    stroke.forEach((point, i) => paintSegment(bitmap, stroke[Math.max(i - 1, 0)], point, thickness / 2, width, height));
  }
  return bitmap;
}

function paintSegment(bitmap, start, end, radius, width, height) {
  const [left, right] = [Math.min(start[0], end[0]) - radius, Math.max(start[0], end[0]) + radius];
  const [top, bottom] = [Math.min(start[1], end[1]) - radius, Math.max(start[1], end[1]) + radius];
  for (let row = Math.max(0, Math.floor(top)); row < Math.min(height, Math.ceil(bottom)); row++) {
    for (let column = Math.max(0, Math.floor(left)); column < Math.min(width, Math.ceil(right)); column++) {
      if (measureDistance([column + 0.5, row + 0.5], start, end) <= radius) bitmap[row * width + column] = 1;
    }
  }
}

// From a point to the nearest point of a line between two others.
export function measureDistance([x, y], [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const along = length ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}

function countInk(bitmap) {
  return bitmap.reduce((sum, pixel) => sum + pixel, 0);
}

// The mean of each block of `block` by `block` pixels.
export function averageBlocks(bitmap, width, height, block) {
  const [columns, rows] = [width / block, height / block];
  const means = new Float32Array(columns * rows);
  for (let i = 0; i < bitmap.length; i++) {
    const row = Math.floor(i / width / block);
    const column = Math.floor((i % width) / block);
    means[row * columns + column] += bitmap[i] / (block * block);
  }
  return means;
}

// The centre of mass [x, y]; the middle of the first pixel is 0.5.
export function findCentre(values, width) {
  let [sum, x, y] = [0, 0, 0];
  values.forEach((value, i) => {
    sum += value;
    x += value * ((i % width) + 0.5);
    y += value * (Math.floor(i / width) + 0.5);
  });
  return [x / sum, y / sum];
}

// The picture moved by whole pixels; what leaves it is lost.
export function move(values, width, right, down) {
  const moved = new Float32Array(values.length);
  const height = values.length / width;
  for (let i = 0; i < values.length; i++) {
    const [column, row] = [(i % width) + right, Math.floor(i / width) + down];
    if (column >= 0 && column < width && row >= 0 && row < height) moved[row * width + column] = values[i];
  }
  return moved;
}
