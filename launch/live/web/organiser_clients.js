// Who is there: a row a client, or, of many, a dot a client and rows of those alone that one should look at.

import { formatDuration } from "./organiser_words.js";

const MOST_ROWS = 60;
const SLOW_S = 2; // that one is waited for until it is called slow
const DOT = 16; // pixels to a side, in the units of the picture
const STATES = { training: "training", here: "here", away: "away", free: "free" };
const LAST_STATES = { ...STATES, here: "till the end", away: "had left" }; // when the run is over
const SVG = "http://www.w3.org/2000/svg";

const rows = new Map(); // by seat: {element, cells}
let dots = []; // elements by seat

// Returns {slow, rejected}: seats that the round waits for, the longest first; those of whom an answer did not count.
export function showClients(status, nowS) {
  const { seats } = status;
  const isMany = seats.length > MOST_ROWS;
  const slow = findSlow(status, nowS);
  const rejected = seats.filter((seat) => seat.rejected).sort((a, b) => b.rejected - a.rejected);
  const first = new Set([...slow, ...rejected]);
  const others = isMany ? [] : seats.filter((seat) => seat.state !== "free" && !first.has(seat));
  const isOver = status.state === "over";
  showRows([...first, ...others].slice(0, MOST_ROWS), new Set(slow), isOver, nowS);
  document.getElementById("rows").hidden = isMany && first.size === 0;
  for (const id of ["legend", "dots"]) document.getElementById(id).toggleAttribute("hidden", !isMany);
  document.getElementById("clients").classList.toggle("many", isMany);
  if (isMany) showDots(seats, isOver);
  const numFree = seats.filter((seat) => seat.state === "free").length;
  const notes = !isMany && numFree ? [`${numFree} of ${seats.length} seats are free`] : [];
  if (status.resumed) notes.push(`counted since the server's last start, after round ${status.resumed}`);
  document.getElementById("others").textContent = notes.length ? `(${notes.join("; ")})` : "";
  return { slow, rejected };
}

// Of rounds that wait: who is asked and has not answered, once half of those asked have.
function findSlow({ seats, waits, state, asked, answered }, nowS) {
  if (!waits || state !== "running" || 2 * answered < asked) return [];
  return seats.filter((seat) => seat.asked !== null && nowS - seat.asked >= SLOW_S).sort((a, b) => a.asked - b.asked);
}

function showRows(shown, slow, isOver, nowS) {
  const elements = shown.map((seat) => fillRow(seat, slow.has(seat), isOver, nowS));
  const body = document.getElementById("body");
  if (elements.length !== body.children.length || elements.some((each, i) => body.children[i] !== each)) {
    body.replaceChildren(...elements);
  }
}

function fillRow(seat, isSlow, isOver, nowS) {
  if (!rows.has(seat.seat)) {
    const element = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    const cells = [name, ...Array.from({ length: 5 }, () => document.createElement("td"))];
    element.append(...cells);
    rows.set(seat.seat, { element, cells });
  }
  const { element, cells } = rows.get(seat.seat);
  const ageS = seat.asked === null ? 0 : nowS - seat.asked;
  const state = `${(isOver ? LAST_STATES : STATES)[seat.state]}${ageS >= SLOW_S ? ` ${formatDuration(ageS)}` : ""}`;
  const name = seat.name || `client ${seat.seat}`;
  const texts = [name, seat.kind, state, seat.answers, seat.late, seat.rejected].map(String);
  texts.forEach((text, i) => cells[i].textContent !== text && (cells[i].textContent = text));
  element.className = `${seat.state}${isSlow ? " slow" : ""}${seat.rejected ? " bad" : ""}`;
  return element;
}

function showDots(seats, isOver) {
  const svg = document.getElementById("dots");
  const columns = Math.ceil(Math.sqrt(seats.length * (innerWidth > 900 ? 5 : 0.8)));
  const layout = `0 0 ${columns * DOT} ${Math.ceil(seats.length / columns) * DOT}`;
  if (dots.length !== seats.length || svg.getAttribute("viewBox") !== layout) {
    dots = seats.map((_, i) => makeDot((i % columns) * DOT, Math.floor(i / columns) * DOT));
    svg.setAttribute("viewBox", layout);
    svg.replaceChildren(...dots);
  }
  const counts = {};
  for (const [i, seat] of seats.entries()) {
    const kind = `${seat.state}${seat.rejected ? " bad" : ""}`;
    counts[seat.state] = (counts[seat.state] ?? 0) + 1;
    if (dots[i].getAttribute("class") !== kind) dots[i].setAttribute("class", kind);
  }
  const numBad = seats.filter((seat) => seat.rejected).length;
  const titles = Object.entries(isOver ? LAST_STATES : STATES);
  const entries = titles.map(([state, title]) => [state, title, counts[state] ?? 0]);
  if (numBad) entries.push(["bad", "with answers that did not count", numBad]);
  svg.setAttribute("aria-label", entries.map(([, title, count]) => `${count} ${title}`).join(", "));
  document.getElementById("legend").replaceChildren(...entries.map(makeEntry));
}

function makeDot(x, y) {
  const dot = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ x: x + 2, y: y + 2, width: DOT - 4, height: DOT - 4 })) {
    dot.setAttribute(name, value);
  }
  return dot;
}

function makeEntry([kind, title, count]) {
  const entry = document.createElement("li");
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${DOT} ${DOT}`);
  svg.setAttribute("aria-hidden", "true");
  const dot = makeDot(0, 0);
  dot.setAttribute("class", kind);
  svg.append(dot);
  const number = document.createElement("strong");
  number.textContent = count.toLocaleString("en");
  entry.append(svg, number, ` ${title}`);
  return entry;
}
