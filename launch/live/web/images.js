// A way to bring examples: pictures in files. Each has the class that its folder is called, or one is chosen for all.

import { Collection } from "./collection.js";
import { label, make } from "./elements.js";
import { looksTurned, storePixels } from "./pixels.js";
import { formatCount, listNames, makePrintable, quote, strip, suggest } from "./python_text.js";

const MOST_PIXELS = 2 ** 22; // that are read of a picture; a larger one is made smaller by the browser first
const MOST_VALUES = 2 ** 26; // of all pictures together, 256 MB
const HIDDEN_FILE = /^(\.|thumbs\.db$|desktop\.ini$)/i;
const AT_ONCE = 20; // pictures, after which it is said how far it is

class Images {
  constructor(description) {
    Object.assign(this, { image: description.image, classes: description.classes });
    this.collection = new Collection(description, 1, () => this.enable());
    this.build();
  }

  build() {
    const { image, classes } = this;
    const form = `${image.width} x ${image.height} pixels in ${image.channels === 1 ? "grey" : "colour"}`;
    this.folder = make("input", { type: "file", webkitdirectory: true, multiple: true });
    this.some = make("input", { type: "file", accept: "image/*", multiple: true });
    this.choice = make("select", {}, ...classes.map((name, i) => new Option(name, i)));
    this.turned = make("input", { type: "checkbox" });
    [this.undo, this.clear] = ["Undo", "Remove all"].map((text) => make("button", { type: "button" }, text));
    this.notes = make("div", { role: "status" });
    this.folder.addEventListener("change", () => this.take(this.folder, (file) => findClass(file, classes)));
    this.some.addEventListener("change", () => this.take(this.some, () => Number(this.choice.value)));
    this.turned.addEventListener("change", () => this.collection.turn(this.turned.checked));
    this.undo.addEventListener("click", () => this.collection.undo());
    this.clear.addEventListener("click", () => this.collection.clear());
    const byFolder = make("p", { hidden: !("webkitdirectory" in this.folder) });
    byFolder.append(...label("A folder that has a folder for each class", this.folder));
    this.element = make(
      "div",
      {},
      make("p", { className: "note" }, `Each becomes ${form}, as shown below. The classes are ${listNames(classes)}.`),
      byFolder,
      make("p", {}, ...label("Or files, all of the class", this.choice), " ", this.some),
      make(
        "p",
        { className: "choice", hidden: image.channels > 1 },
        ...label("Turn light and dark over", this.turned).reverse(),
      ),
      this.notes,
      this.collection.element,
      make("p", { className: "buttons" }, this.undo, this.clear),
    );
    this.some.setAttribute("aria-label", "Pictures of the chosen class");
  }

  enable() {
    const { isBusy, history, items } = this.collection;
    this.folder.disabled = this.some.disabled = isBusy;
    this.undo.disabled = isBusy || !history.length;
    this.clear.disabled = isBusy || !items.length;
  }

  // Reads the files that an input has; `find` gives the place of a file's class, or a line on why it has none.
  async take(input, find) {
    const found = Array.from(input.files)
      .filter(({ name }) => !HIDDEN_FILE.test(name))
      .map((file) => [file, find(file)]);
    input.value = ""; // so that the same can be chosen again
    const fitting = found.filter(([, place]) => typeof place === "number");
    const lines = countAlike(found.filter(([, place]) => typeof place !== "number").map(([, line]) => line));
    this.collection.isBusy = true;
    this.collection.show();
    const [read, unreadable, numLeft] = await this.read(fitting);
    this.collection.isBusy = false;
    if (unreadable.length)
      lines.push(
        `${countPictures(unreadable.length)} left out, since this browser reads none there: ${listNames(unreadable)}`,
      );
    if (numLeft) lines.push(`${countPictures(numLeft)} left out, since no more are taken`);
    if (!read.length) lines.unshift("No picture was read.");
    if (!this.turned.checked && 2 * read.filter(({ stored }) => looksTurned(stored, this.image)).length > read.length) {
      this.turned.checked = true;
      this.collection.turn(true);
      lines.push(
        "Most of these are dark where the run's are light, so light and dark are turned over; " +
          "see whether that is right",
      );
    }
    this.collection.add(read);
    this.say(lines);
  }

  // [pictures, names of what is none, how many are left out as too many]; while it reads, it says how far it is.
  async read(files) {
    const [read, unreadable] = [[], []];
    const { width, height, channels } = this.image;
    const most = Math.max(0, Math.floor(MOST_VALUES / (width * height * channels)) - this.collection.items.length);
    for (const [i, [file, place]] of files.slice(0, most).entries()) {
      if (i % AT_ONCE === 0) this.say([`Reading ${formatCount(i)} of ${formatCount(files.length)}…`]);
      const pixels = await decode(file).catch(() => null);
      if (pixels)
        read.push({ stored: storePixels(pixels.data, pixels.width, pixels.height, this.image), label: place });
      else unreadable.push(file.name);
    }
    return [read, unreadable, Math.max(0, files.length - most)];
  }

  say(lines) {
    this.notes.replaceChildren(...lines.map((line) => make("p", {}, makePrintable(line))));
  }
}

// The pixels of a picture as it is to be seen, ImageData; white where it is transparent. Rejects what is none.
async function decode(file) {
  const bitmap = await createImageBitmap(file);
  const share = Math.min(1, Math.sqrt(MOST_PIXELS / (bitmap.width * bitmap.height)));
  const [width, height] = [bitmap.width, bitmap.height].map((size) => Math.max(1, Math.round(size * share)));
  const canvas = make("canvas", { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}

// The place of the class that a file's folder is called, by its spelling or else in small letters; or why there is
// none.
export function findClass({ webkitRelativePath }, classes) {
  const folder = webkitRelativePath.split("/").at(-2) ?? "";
  const place = classes.indexOf(folder);
  if (place >= 0) return place;
  const simplify = (name) => strip(name).toLowerCase();
  const alike = classes.flatMap((name, i) => (simplify(name) === simplify(folder) ? [i] : []));
  return alike.length === 1 ? alike[0] : `the run has no class ${quote(folder)}${suggest(folder, classes)}`;
}

function countAlike(lines) {
  const counts = new Map();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return Array.from(counts, ([line, count]) => `${countPictures(count)} left out: ${line}`);
}

function countPictures(number) {
  return number === 1 ? "1 file is" : `${formatCount(number)} files are`;
}

let images = null;

export const IMAGES = {
  title: "Pictures in files",
  fits: ({ kind, image }) => kind === "arrays" && Boolean(image),
  show(place, description, onChange) {
    images ??= new Images(description);
    place.append(images.element);
    images.collection.tell(onChange);
  },
  read: async (key) => images.collection.read(key),
};
