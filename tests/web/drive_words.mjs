// Drives the page of a model that takes the words of a text: `node drive_words.mjs page.html answers.json "text" [folder]`.
//
// It is opened on a desktop and on a small phone. Each time the text is typed, of which the model knows a word, and all
// test examples are run. What the page answered is written as JSON, as by drive_page.mjs, with all that went wrong.
// Into the folder go screenshots.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { measureLayout } from "./measure_layout.mjs";
import { SIZES, WAIT, findOverflow, launch, serve, startPage, takeShot } from "./open_page.mjs";

const [, , pagePath, answersPath, typed, shots] = process.argv;
const SMALL_PHONE = { width: 360, height: 640 };
const UNKNOWN = "qwxz";

async function type(page, text) {
  await page.fill("#text", "");
  await page.locator("#text").pressSequentially(text);
  await page.waitForTimeout(1000);
  return page.textContent("#bars");
}

async function findProblems(page, problems) {
  const before = await type(page, UNKNOWN);
  const notes = await page.textContent("#notes");
  if (!notes.includes(`"${UNKNOWN}"`)) problems.push(`an unknown word is not said: ${notes}`);
  if ((await type(page, typed)) === before) problems.push(`the answer does not depend on the text: ${before}`);
}

async function runAll(page) {
  await page.click("#run-all");
  await page.waitForFunction(() => globalThis.lastCheck, null, WAIT);
  return page.evaluate(() => {
    const { model, checks } = globalThis.lastCheck;
    const plain = ({ file, logits, ...check }) => [file.format, { ...check, logits: logits.map((each) => Array.from(each)) }];
    return { [model]: Object.fromEntries(checks.map(plain)) };
  });
}

async function visit(browser, name, url, size, colorScheme) {
  const isPhone = size !== SIZES.desktop;
  const options = { viewport: size, colorScheme, hasTouch: isPhone, isMobile: isPhone };
  const { context, page, problems } = await startPage(browser, url, options, false);
  const build = await page.evaluate(() => document.documentElement.dataset.ready ?? "");
  if (!build) problems.push(`it does not start: ${await page.textContent("#status")}`);
  if (build) await findProblems(page, problems);
  if (build) problems.push(...(await measureLayout(page, "#text", size)));
  problems.push(...(await findOverflow(page, size)));
  await takeShot(page, shots, name);
  const answers = build ? await runAll(page) : {};
  const sample = await page.evaluate(() => JSON.parse(document.querySelector("#page-data").textContent).sample);
  await context.close();
  return { name, build, sample, answers, strokes: [], trainings: [], problems };
}

const browser = await launch();
const visits = [
  await visit(browser, "file, desktop", pathToFileURL(path.resolve(pagePath)).href, SIZES.desktop, "light"),
  await serve(pagePath, (url) => visit(browser, "server, small phone", url, SMALL_PHONE, "dark")),
];
await browser.close();
writeFileSync(answersPath, JSON.stringify({ size: readFileSync(pagePath).length, visits }));
