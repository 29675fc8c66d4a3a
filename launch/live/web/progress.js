// What is shown of the work: the round, its steps, the loss, what came and went, and how long is left.

import { showRows } from "./answer.js";
import { formatSeconds } from "./consent.js";
import { formatBytes, formatNumber } from "./maths.js";

const WAITING = "waiting for the others";
const MOST_TIMES = 10; // rounds by whose mean the time left is told

export class Progress {
  constructor(page) {
    this.page = page;
    this.classNames = [];
    this.numTrained = 0; // rounds
    this.losses = [];
    this.times = []; // between the beginnings of rounds, seconds
    this.begun = null;
    this.bytes = { down: 0, up: 0 };
  }

  begin({ rounds }) {
    this.numRounds = rounds;
    this.begun = null;
    this.page.rounds.max = rounds;
    this.page.round.textContent = "Waiting for the others";
    this.draw();
  }

  hear(what, details) {
    this.bytes = details.bytes;
    this[what]?.(details);
    this.draw();
  }

  welcome({ class_names: names, num_classes: numClasses, round }) {
    this.classNames = names.length ? names : Array.from({ length: numClasses }, (_, i) => String(i));
    this.show(round, WAITING);
  }

  lost() {
    this.begun = null; // such time is of no round
  }

  started({ type, round, steps }) {
    this.page.steps.max = steps || 1;
    this.page.steps.value = 0;
    if (type === "train") {
      const now = performance.now() / 1000;
      if (this.begun !== null) this.times = [...this.times, now - this.begun].slice(-MOST_TIMES);
      this.begun = now;
    }
    this.show(round, { train: "training", evaluate: "testing", fine_tune: "tuning its own model" }[type]);
  }

  step({ step, steps, loss }) {
    this.page.steps.max = steps;
    this.page.steps.value = step;
    this.loss = loss;
  }

  answered({ type, isSent, seconds, num_trained: numTrained, loss_sum: lossSum, sums, before, after }) {
    this.page.steps.value = this.page.steps.max;
    this.seconds = seconds;
    if (type === "answer") {
      this.numTrained += isSent;
      this.loss = lossSum / numTrained;
      if (Number.isFinite(this.loss)) this.losses.push(this.loss);
      this.drawCurve();
    } else if (type === "measured") {
      this.test = `${sums.correct} of ${sums.num} right`;
    } else {
      this.test = `${after.correct} of ${after.num} right, ${before.correct} before it was tuned here`;
    }
    this.show(this.round, WAITING);
  }

  show(round, doing) {
    this.round = round;
    const where = round ? `Round ${round} of ${this.numRounds}` : "Waiting for the others";
    this.page.round.textContent = round && doing ? `${where}: ${doing}` : where;
    this.page.rounds.value = Math.max(0, (round || 1) - 1);
  }

  // A screen that goes dark pauses pages on most phones.
  showCare(isAwake) {
    this.page.care.textContent = isAwake
      ? "The screen is kept on while this page is in sight."
      : "This browser does not keep the screen on for this page: do it by hand, since phones pause pages in the dark.";
  }

  draw() {
    const rows = [
      ["Loss", this.loss === undefined ? "—" : formatNumber(this.loss)],
      ["Last round here", this.seconds === undefined ? "—" : formatSeconds(this.seconds)],
      ["Left, about", this.describeLeft()],
      ["Came and went", `${formatBytes(this.bytes.down)}, ${formatBytes(this.bytes.up)}`],
    ];
    if (this.test) rows.push(["Own test examples", this.test]);
    showRows(this.page.facts, rows);
  }

  describeLeft() {
    if (!this.times.length || !this.round) return "—";
    const mean = this.times.reduce((sum, time) => sum + time, 0) / this.times.length;
    return formatSeconds(mean * (this.numRounds - this.round + 1));
  }

  drawCurve() {
    if (this.losses.length < 2) return;
    const [width, height, edge] = [320, 90, 6];
    const most = Math.max(...this.losses);
    const points = this.losses.map((loss, i) => {
      const x = edge + ((width - 2 * edge) * i) / (this.losses.length - 1);
      return `${x.toFixed(1)},${(height - edge - ((height - 2 * edge) * loss) / (most || 1)).toFixed(1)}`;
    });
    this.page.curve.firstElementChild.setAttribute("points", points.join(" "));
    this.page.curve.setAttribute(
      "aria-label",
      `Training loss by round, the last one ${formatNumber(this.losses.at(-1))}`,
    );
    this.page.curve.removeAttribute("hidden");
  }

  summarize() {
    this.page.rounds.value = this.numRounds;
    return {
      rounds: this.numTrained === 1 ? "1 round" : `${this.numTrained} rounds`,
      sentBytes: formatBytes(this.bytes.up),
    };
  }
}
