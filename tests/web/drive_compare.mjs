// Drives a page of launch.compare: `node drive_compare.mjs page.html answers.json [folder for screenshots]`.
//
// It is opened from its file, on a desktop and on a phone, light and dark. What it shows is written as JSON: the groups
// with their intervals, what the first card says and where it stands, the difference of two groups, what a pointer over a
// curve reads, how sorting and filters change the table, which choices the keyboard reaches, and all that went wrong.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SIZES, findOverflow, launch, openPage, pressButtons, takeShot } from "./open_page.mjs";

const [, , pagePath, answersPath, shots] = process.argv;
const WAIT = { timeout: 60_000 };

const readTable = (page, id) =>
  page.$$eval(`#${id} tr`, (lines) => lines.map((line) => [...line.children].map((cell) => cell.textContent.replace(/[▲▼]$/, ""))));
const readText = (page, id) => page.textContent(`#${id}`);
const countRuns = (page) => page.$$eval("#runs tbody tr", (lines) => lines.length);

// What the chart says where the pointer is: in the middle of a curve.
async function hover(page) {
  const plot = page.locator("#curves .nsewdrag").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const mark = await page.evaluate(() => {
    const chart = document.querySelector("#curves");
    const line = chart.data.findLast((trace) => trace.mode?.startsWith("lines") && trace.hoverinfo !== "skip");
    const i = Math.floor(line.x.length / 2);
    const { xaxis, yaxis } = chart._fullLayout;
    return [xaxis.l2p(xaxis.d2l(line.x[i])), yaxis.l2p(yaxis.d2l(line.y[i]))];
  });
  await page.mouse.move(box.x + mark[0] + 1, box.y + mark[1]);
  await page.waitForTimeout(600);
  return page.$$eval("#curves .hoverlayer text", (texts) => texts.map((text) => text.textContent).join(" | "));
}

// Sorts by the second column, filters by the first flag, groups by nothing, and puts everything back.
async function useTable(page) {
  const all = await countRuns(page);
  const column = () => page.$$eval("#runs tbody tr", (lines) => lines.map((line) => line.children[1].textContent));
  await page.click("#runs thead th:nth-child(2) button");
  const once = await column();
  await page.click("#runs thead th:nth-child(2) button");
  const twice = await column();
  await page.click("#filters .filter summary");
  await page.click("#filters .filter .values label input");
  const filtered = await countRuns(page);
  const count = await readText(page, "count");
  await page.keyboard.press("Escape");
  await page.click("#reset");
  return { all, once, twice, filtered, count, afterReset: await countRuns(page) };
}

// What the first card says, another baseline that is chosen there, and how far down its first line ends and the filters
// begin, in pixels.
async function readAnswer(page) {
  const says = await page.evaluate(() => ({
    title: document.querySelector("#answer-title").textContent,
    baseline: document.querySelector("#baseline").value,
    leads: [...document.querySelectorAll("#leads li")].map((line) => [line.dataset.group, ...[...line.children].map((part) => part.textContent)]),
    text: document.querySelector("#leads").textContent,
    notes: document.querySelector("#answer-notes").textContent,
    ends: document.querySelector("#leads :is(li, p)").getBoundingClientRect().bottom,
    filters: document.querySelector("#controls").getBoundingClientRect().top,
  }));
  const others = await page.$$eval("#baseline option", (options) => options.map((option) => option.value));
  const other = others.find((value) => value !== says.baseline);
  if (!other) return says;
  await page.selectOption("#baseline", other);
  const changed = await page.$$eval("#leads li", (lines) => lines.map((line) => line.dataset.group));
  await page.selectOption("#baseline", says.baseline);
  return { ...says, other, changed };
}

// The ids of the selects that Tab reaches, each with whether one sees that it has the focus.
async function walkByKeyboard(page) {
  const seen = {};
  await page.evaluate(() => (document.activeElement?.blur(), window.scrollTo(0, 0)));
  for (let i = 0; i < 150; i++) {
    await page.keyboard.press("Tab");
    const [id, isSeen] = await page.evaluate(() => {
      const focused = document.activeElement;
      return [focused?.tagName === "SELECT" ? focused.id : "", getComputedStyle(focused).outlineStyle !== "none"];
    });
    if (id) seen[id] = isSeen;
    if (id === "run") break;
  }
  return seen;
}

async function showEveryChoice(page) {
  for (const id of ["metric", "axis", "spread", "at"]) {
    const values = await page.$$eval(`#${id} option`, (options) => options.map((option) => option.value));
    for (const value of values) await page.selectOption(`#${id}`, value);
    await page.selectOption(`#${id}`, values[0]);
  }
  await page.check("#all-flags");
  await page.uncheck("#all-flags");
}

async function waitForPictures(page) {
  await page.locator("#run-details img").last().scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll("#run-details img")].every((image) => image.complete), null, WAIT);
}

async function visit(browser, name, url, size, colorScheme) {
  const isPhone = size === SIZES.phone;
  const { context, page, problems } = await openPage(browser, url, { viewport: size, colorScheme, hasTouch: isPhone, isMobile: isPhone });
  const begin = Date.now();
  await page.goto(url);
  await page.waitForSelector("html[data-ready], #status.failed", WAIT);
  const seconds = (Date.now() - begin) / 1000;
  if (await page.isVisible("#status.failed")) problems.push(`it does not start: ${await readText(page, "status")}`);
  problems.push(...(await findOverflow(page, size)));
  await takeShot(page, shots, name);
  const answers = { name, seconds, problems };
  const isSingle = await page.evaluate(() => document.body.classList.contains("single"));
  if (!problems.length) {
    answers.answer = await readAnswer(page);
    answers.height = size.height;
    answers.details = await page.$$eval("#run-details summary", (titles) => titles.map((title) => title.textContent));
    if (answers.details.some((title) => title.startsWith("Plots ("))) await waitForPictures(page);
    answers.pictures = await page.$$eval("#run-details img", (images) => images.map((image) => image.naturalWidth));
    if (!isPhone) answers.hover = await hover(page);
    if (!isSingle) {
      if (!isPhone) answers.reached = await walkByKeyboard(page);
      answers.groups = await readTable(page, "groups");
      answers.difference = await readText(page, "difference");
      answers.pairs = await readTable(page, "pairs");
      if (!isPhone) answers.table = await useTable(page);
      if (!isPhone) await showEveryChoice(page);
    }
    if (!isPhone) answers.buttons = await pressButtons(page);
  }
  await context.close();
  return answers;
}

const browser = await launch();
const url = pathToFileURL(path.resolve(pagePath)).href;
const visits = [];
for (const [kind, size] of Object.entries(SIZES)) {
  for (const scheme of ["light", "dark"]) visits.push(await visit(browser, `${kind}_${scheme}`, url, size, scheme));
}
await browser.close();
writeFileSync(answersPath, JSON.stringify({ size: readFileSync(pagePath).length, visits }, null, 1));
