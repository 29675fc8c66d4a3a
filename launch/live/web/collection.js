// A person's pictures, each with its class: counted, and shown in a grid, where each can be deleted, and be back.

import { findColors, paintValues } from "./board.js";
import { make, makeCounts } from "./elements.js";
import { countHeldOut, holdOut } from "./hold_out.js";
import { preprocess } from "./maths.js";

const MOST_SHOWN = 60; // the newest

export class Collection {
  // `least` is the number of pictures below which there is too little to train on. `onShow` is called when there are
  // others.
  constructor({ image, classes, scale, offset }, least, onShow) {
    Object.assign(this, { image, classes, scale, offset, least, onShow });
    this.onChange = () => {};
    this.items = []; // {stored, label}
    this.isTurned = false; // light for dark, for all of them
    this.isBusy = false; // more are being read
    this.history = []; // what undoes each change, the last at the end
    this.counts = make("div");
    this.grid = make("ul", {
      className: "pictures",
      role: "list",
      "aria-label": "Your pictures; press one to delete it",
    });
    this.more = make("p", { className: "note" });
    this.element = make("div", {}, this.counts, this.grid, this.more);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
  }

  // From now on `onChange` gets {numTrain, numTest, problem} whenever there are other pictures.
  tell(onChange) {
    this.onChange = onChange;
    this.show();
  }

  add(items, undo = () => {}) {
    if (!items.length) {
      this.show();
      return;
    }
    this.items.push(...items);
    this.change(() => {
      this.items.splice(this.items.length - items.length, items.length);
      undo();
    });
  }

  remove(item) {
    const place = this.items.indexOf(item);
    this.items.splice(place, 1);
    this.change(() => this.items.splice(place, 0, item));
    // The one in its place has the focus, so that a keyboard goes on from there; the newest are first.
    const buttons = this.grid.querySelectorAll("button");
    buttons[Math.min(buttons.length - 1, Math.max(0, this.items.length - place - 1))]?.focus();
  }

  clear() {
    const items = this.items.splice(0);
    this.change(() => this.items.push(...items));
  }

  turn(isTurned) {
    this.isTurned = isTurned;
    this.show();
  }

  // The stored values of a picture as the run gets them.
  take({ stored }) {
    const { low, high } = this.image;
    return this.isTurned ? stored.map((value) => low + high - value) : stored;
  }

  undo() {
    this.history.pop()?.();
    this.show();
  }

  change(undo) {
    this.history.push(undo);
    this.show();
  }

  count(label) {
    return this.items.filter((item) => item.label === label).length;
  }

  show() {
    this.counts.replaceChildren(
      makeCounts(
        this.classes,
        this.items.map(({ label }) => label),
      ),
    );
    const shown = this.items.slice(-MOST_SHOWN).reverse();
    this.grid.replaceChildren(...shown.map((item) => make("li", {}, this.makeButton(item))));
    const hidden = this.items.length - shown.length;
    this.more.textContent = shown.length
      ? `Press a picture to delete it${hidden ? `. ${hidden} more are not shown` : ""}.`
      : "";
    this.onShow();
    this.onChange(this.measure());
  }

  makeButton(item) {
    const name = this.classes[item.label];
    const { width, height } = this.image;
    const canvas = make("canvas", { width, height });
    const { paper, ink } = findColors(this.image);
    paintValues(canvas, this.take(item), this.image, paper, ink);
    const button = make("button", {
      type: "button",
      className: "picture",
      "aria-label": `${name}: delete it`,
      title: "Delete",
    });
    button.append(canvas, make("span", { "aria-hidden": "true" }, name));
    button.addEventListener("click", () => this.remove(item));
    return button;
  }

  measure() {
    if (this.isBusy) return { numTrain: 0, numTest: 0, problem: "Reading…" };
    const [number, numTest] = [this.items.length, countHeldOut(this.items.length)];
    const isLittle = number < this.least && this.least > 1;
    const problem = isLittle ? `At least ${this.least} are needed; ${number || "none"} so far.` : "";
    return { numTrain: number - numTest, numTest, problem };
  }

  // {trainX, trainY, testX, testY}, preprocessed.
  read(key) {
    const size = this.image.width * this.image.height * this.image.channels;
    const stored = new Float32Array(this.items.length * size);
    this.items.forEach((item, i) => stored.set(this.take(item), i * size));
    return holdOut(
      preprocess(stored, this.scale, this.offset),
      Int32Array.from(this.items, ({ label }) => label),
      key,
    );
  }
}
