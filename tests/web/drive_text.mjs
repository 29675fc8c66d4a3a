// Drives the page of a text model: `node drive_text.mjs page.html answers.json "text" [folder]`.
//
// It is opened three times, as by drive_page.mjs. Every time the text is typed and its line completed in every format,
// and all of the test examples are run. What the page answered is written as JSON, with all that went wrong. Into the
// folder go screenshots.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { measureLayout } from "./measure_layout.mjs";
import { SIZES, WAIT, findOverflow, launch, serve, startPage, takeShot } from "./open_page.mjs";

const [, , pagePath, answersPath, typed, shots] = process.argv;

const readAnswer = (page) =>
  page.evaluate(() => ({
    text: document.querySelector("#answer").textContent,
    bars: [...document.querySelectorAll("#bars li")].map((row) => row.getAttribute("aria-label")).join("; "),
  }));

// Types letter by letter, as a person does, and waits for the answer.
async function type(page, text) {
  await page.click("#clear");
  await page.locator("#text").pressSequentially(text);
  await page.waitForTimeout(1500);
  return readAnswer(page);
}

// {format: the line as completed in it}, and a line for each that stays as it was.
async function completeLines(page, problems) {
  const lines = {};
  for (const format of await page.locator("#format option").allTextContents()) {
    await type(page, typed);
    await page.selectOption("#format", { label: format });
    await page.click("#complete");
    await page.waitForSelector("#complete:enabled", WAIT);
    lines[format] = await page.inputValue("#text");
    if (lines[format] === typed) problems.push(`${format} adds nothing to ${JSON.stringify(typed)}`);
  }
  return lines;
}

async function runAll(page) {
  await page.waitForSelector("#run-all:enabled", WAIT);
  await page.click("#run-all");
  await page.waitForFunction(() => globalThis.lastCheck, null, WAIT);
  return page.evaluate(() => {
    const { model, checks } = globalThis.lastCheck;
    return { [model]: Object.fromEntries(checks.map(({ file, ...check }) => [file.format, check])) };
  });
}

async function findProblems(page, problems) {
  const before = await type(page, typed.slice(0, 1));
  const after = await type(page, typed);
  if (before.bars === after.bars) problems.push(`what comes next does not depend on the text: ${after.bars}`);
  await page.click("#next");
  await page.waitForTimeout(500);
  if (!(await page.inputValue("#text"))) problems.push("a test example has no text");
  await page.click("#clear");
  await page.waitForTimeout(500);
  if (await page.inputValue("#text")) problems.push("a cleared text is still there");
  return after.text;
}

async function visit(browser, name, url, { isPhone = false, isCompat = false, colorScheme = "light" } = {}) {
  const size = isPhone ? SIZES.phone : SIZES.desktop;
  const options = { viewport: size, colorScheme, hasTouch: isPhone, isMobile: isPhone };
  const { context, page, problems } = await startPage(browser, url, options, isCompat);
  const build = await page.evaluate(() => document.documentElement.dataset.ready ?? "");
  if (!build) problems.push(`it does not start: ${await page.textContent("#status")}`);
  if (build && build !== (isCompat ? "compat" : "default")) problems.push(`it runs the build ${build}`);
  const next = build ? await findProblems(page, problems) : "";
  if (build) problems.push(...(await measureLayout(page, "#text", size)));
  const answers = build ? await runAll(page) : {};
  const lines = build ? await completeLines(page, problems) : {};
  problems.push(...(await findOverflow(page, size)));
  await takeShot(page, shots, name);
  const sample = await page.evaluate(() => JSON.parse(document.querySelector("#page-data").textContent).sample);
  await context.close();
  return { name, build, sample, typed, next, lines, answers, problems };
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
