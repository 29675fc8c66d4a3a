// Drives a page of launch.export: `node drive_page.mjs page.html answers.json [folder for screenshots]`.
//
// It is opened three times: from its file on a desktop, from a server on 127.0.0.1 on a phone, and from its file where
// relaxed SIMD is missing. Every time all of its test examples are run, and strokes are drawn if it has a board, or its
// sliders are moved. What it answered is written as JSON, with all that went wrong: console errors, requests, a stroke
// without effect. Training files beside the page are trained in it.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { measureLayout } from "./measure_layout.mjs";
import { moveInputs } from "./move_inputs.mjs";
import { SIZES, WAIT, findOverflow, isFirefox, launch, serve, startPage, takeShot } from "./open_page.mjs";
import { findProblems, trainFiles } from "./train_in_page.mjs";

const [, , pagePath, answersPath, shots] = process.argv;
const CIRCLE = Array.from({ length: 25 }, (_, i) => [0.5 + 0.22 * Math.sin(i / 3.8), 0.5 - 0.33 * Math.cos(i / 3.8)]);
const LINE = Array.from({ length: 9 }, (_, i) => [0.5, 0.15 + 0.0875 * i]);
const STROKE_WAIT = { timeout: 20_000 }; // a busy machine takes long for the answer, too

// {model: {format: {classes, logits}}} of all test examples, for all models or the first alone.
async function runAll(page, isFirstOnly) {
  const names = await page.locator("#model option").allTextContents();
  const answers = {};
  for (const name of isFirstOnly ? names.slice(0, 1) : names) {
    if (names.length > 1) await page.selectOption("#model", { label: name });
    await page.evaluate(() => delete globalThis.lastCheck);
    await page.waitForSelector("#run-all:enabled", WAIT);
    await page.click("#run-all");
    await page.waitForFunction(() => globalThis.lastCheck, null, WAIT);
    answers[name] = await page.evaluate(() =>
      Object.fromEntries(
        globalThis.lastCheck.checks.map(({ file, classes, logits }) => [
          file.format,
          { classes, logits: logits.map((own) => [...own]) },
        ]),
      ),
    );
  }
  return answers;
}

// `bars` is what they say, in whole percents; `exactly` has their lengths, too: of a model that has seen random numbers
// alone, a stroke may change no percent.
const readAnswer = (page) =>
  page.evaluate(() => ({
    text: document.querySelector("#answer").textContent,
    bars: [...document.querySelectorAll("#bars li")].map((row) => row.getAttribute("aria-label")).join("; "),
    exactly: document.querySelector("#bars").innerHTML,
  }));

async function drawByMouse(page, points) {
  const place = await findPlaces(page, points);
  await page.mouse.move(...place[0]);
  await page.mouse.down();
  for (const point of place.slice(1)) await page.mouse.move(...point);
  await page.mouse.up();
}

async function drawByFinger(page, points) {
  const client = await page.context().newCDPSession(page);
  const send = (type, touchPoints) => client.send("Input.dispatchTouchEvent", { type, touchPoints });
  const place = (await findPlaces(page, points)).map(([x, y]) => [{ x, y }]);
  await send("touchStart", place[0]);
  for (const point of place.slice(1)) await send("touchMove", point);
  await send("touchEnd", []);
}

async function drawByKeys(page) {
  await page.focus("#board");
  for (const key of [...Array(10).fill("ArrowUp"), " ", ...Array(20).fill("ArrowDown"), " "]) await page.keyboard.press(key);
}

async function findPlaces(page, points) {
  await page.locator("#board").scrollIntoViewIfNeeded();
  const box = await page.locator("#board").boundingBox();
  return points.map(([x, y]) => [box.x + x * box.width, box.y + y * box.height]);
}

// What the page answers before and after each way of drawing; "" where it has no board.
async function drawStrokes(page, problems, isPhone) {
  if (!(await page.isVisible("#board"))) return [];
  const draw = isPhone && !isFirefox ? drawByFinger : drawByMouse; // only Chromium lets a script move a finger
  const seen = [];
  const ways = [
    ["a circle", () => draw(page, CIRCLE)],
    ["a line", () => draw(page, LINE)],
    ["a line by keys", () => drawByKeys(page)],
  ];
  for (const [name, act] of ways) {
    await page.click("#clear");
    await page.waitForTimeout(300);
    const before = await readAnswer(page);
    await act();
    const isOther = (earlier) => document.querySelector("#bars").innerHTML !== earlier;
    const hasChanged = await page.waitForFunction(isOther, before.exactly, STROKE_WAIT).catch(() => false);
    await page.waitForTimeout(700); // for the answer to the whole of it
    const after = await readAnswer(page);
    if (!hasChanged) problems.push(`${name}, drawn, does not change the answer ${after.text}`);
    seen.push({ name, before: before.text, after: after.text, exactly: after.exactly });
  }
  if (seen[0].exactly === seen[1].exactly) problems.push(`a circle and a line have the same answer: ${seen[0].after}`);
  return seen;
}

async function visit(browser, name, url, { isPhone = false, isCompat = false, colorScheme = "light" } = {}) {
  const size = isPhone ? SIZES.phone : SIZES.desktop;
  const options = { viewport: size, colorScheme, hasTouch: isPhone, isMobile: isPhone };
  const { context, page, problems } = await startPage(browser, url, options, isCompat);
  const build = await page.evaluate(() => document.documentElement.dataset.ready ?? "");
  if (!build) problems.push(`it does not start: ${await page.textContent("#status")}`);
  if (build && build !== (isCompat ? "compat" : "default")) problems.push(`it runs the build ${build}`);
  if (await page.evaluate(() => globalThis.crossOriginIsolated)) problems.push("it has threads, which it should not need");
  problems.push(...(await findOverflow(page, size)));
  const strokes = build ? await drawStrokes(page, problems, isPhone) : [];
  const moved = build ? await moveInputs(page, problems, readAnswer) : {};
  if (build) problems.push(...(await measureLayout(page, "#board, #signal input, #signal select, #signal summary", size)));
  const answers = build ? await runAll(page, isPhone || isCompat) : {};
  const trainings = build ? await trainFiles(page, path.dirname(pagePath)) : [];
  problems.push(...trainings.flatMap(findProblems));
  await takeShot(page, shots, name);
  const sample = await page.evaluate(() => JSON.parse(document.querySelector("#page-data").textContent).sample);
  await context.close();
  return { name, build, sample, answers, strokes, moved, trainings, problems };
}

const browser = await launch();
const file = pathToFileURL(path.resolve(pagePath)).href;
const visits = [
  await visit(browser, "file, desktop", file),
  await serve(pagePath, (url) => visit(browser, "server, phone", url, { isPhone: true, colorScheme: "dark" })),
  await visit(browser, "file, no relaxed SIMD", file, { isCompat: true }),
];
await browser.close();
writeFileSync(answersPath, JSON.stringify({ size: readFileSync(pagePath).length, visits }));
