// People bring examples in pages of live runs: `node tests/live/own_examples.mjs <steps.json> [<folder of pictures>]`.
// `steps` has the link of each page and what is done there: {link, draw: number}, {link, pictures: folder, classes} or
// {link, table: file, refused: file}. Says a line of JSON on each. See own_examples.py.

import { readFileSync } from "node:fs";
import { findOverflow, isFirefox, launch, openPage, SIZES, takeShot } from "../web/open_page.mjs";

const LIMIT = { timeout: 240_000 };
// Points of a line through each digit, shares of the drawing area.
const DIGITS = [
  [
    [0.5, 0.1],
    [0.25, 0.3],
    [0.25, 0.7],
    [0.5, 0.9],
    [0.75, 0.7],
    [0.75, 0.3],
    [0.5, 0.1],
  ],
  [
    [0.4, 0.25],
    [0.5, 0.1],
    [0.5, 0.9],
  ],
  [
    [0.25, 0.3],
    [0.5, 0.1],
    [0.75, 0.3],
    [0.25, 0.9],
    [0.78, 0.9],
  ],
  [
    [0.3, 0.15],
    [0.7, 0.2],
    [0.45, 0.5],
    [0.75, 0.7],
    [0.3, 0.9],
  ],
  [
    [0.5, 0.1],
    [0.2, 0.6],
    [0.8, 0.6],
    [0.6, 0.4],
    [0.6, 0.9],
  ],
  [
    [0.75, 0.1],
    [0.3, 0.1],
    [0.3, 0.45],
    [0.7, 0.55],
    [0.65, 0.85],
    [0.25, 0.9],
  ],
  [
    [0.65, 0.1],
    [0.3, 0.5],
    [0.35, 0.85],
    [0.7, 0.8],
    [0.65, 0.55],
    [0.32, 0.65],
  ],
  [
    [0.2, 0.12],
    [0.8, 0.12],
    [0.4, 0.9],
  ],
  [
    [0.5, 0.5],
    [0.25, 0.3],
    [0.5, 0.1],
    [0.75, 0.3],
    [0.5, 0.5],
    [0.2, 0.75],
    [0.5, 0.92],
    [0.8, 0.75],
    [0.5, 0.5],
  ],
  [
    [0.7, 0.35],
    [0.4, 0.5],
    [0.3, 0.25],
    [0.6, 0.1],
    [0.7, 0.35],
    [0.6, 0.9],
  ],
];

const [steps, shots] = process.argv.slice(2);
const browser = await launch();
await Promise.all(JSON.parse(readFileSync(steps, "utf8")).map(takePart));
await browser.close();
process.exit(0);

async function takePart(step, place) {
  const origin = new URL(step.link).origin;
  const options = { viewport: SIZES.phone, colorScheme: place % 2 ? "dark" : "light", hasTouch: !isFirefox };
  const { page, problems } = await openPage(browser, step.link, options);
  await page.goto(step.link);
  await page.waitForSelector("#way-place :first-child", LIMIT);
  const bring = step.draw ? bringDrawings : step.pictures ? bringPictures : bringTable;
  const seen = await bring(page, step);
  seen.problem = await page.locator("#own-problem").textContent();
  seen.counts = await page.locator(".counts strong").allTextContents();
  seen.overflow = await findOverflow(page, SIZES.phone);
  await takeShot(page, shots, `own_examples_${place}`);
  await page.locator("#agree").focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#over:not([hidden]), #paused:not([hidden])", LIMIT);
  seen.end = await page.locator("#over:not([hidden]) #summary, #paused:not([hidden]) #why").textContent();
  seen.problems = problems.filter((each) => !each.startsWith(`request: ${origin}/`));
  console.log(JSON.stringify({ place, ...seen }));
}

// Draws what is asked for, the last one by keyboard; deletes one, and takes that back.
async function bringDrawings(page, { draw }) {
  const seen = { asked: [], before: await page.locator("#agree").isDisabled() };
  const area = page.locator(".drawing-area");
  const count = () => page.locator(".picture").count();
  const finger = isFirefox ? null : await page.context().newCDPSession(page);
  for (let i = 0; i < draw - 1; i++) {
    const asked = await page.locator(".asked strong").textContent();
    seen.asked.push(asked);
    await area.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await area.boundingBox();
    const points = DIGITS[asked].map(([right, down]) => [
      x + width * (right + 0.01 * (i % 4)),
      y + height * (down + 0.01 * (i % 3)),
    ]);
    await (finger ? drawByTouch(finger, points) : drawByMouse(page, points));
    const keep = page.getByRole("button", { name: "Keep" });
    await (finger ? keep.tap() : keep.click());
    await page.waitForFunction((number) => document.querySelectorAll(".picture").length === number, i + 1, LIMIT);
  }
  await area.focus();
  for (const key of ["ArrowUp", "Space", "ArrowDown", "ArrowDown", "ArrowDown", "Space", "Enter"])
    await page.keyboard.press(key);
  seen.drawn = await count();
  await page.locator(".picture").nth(2).focus();
  await page.keyboard.press("Enter");
  seen.afterDeleting = await count();
  seen.focused = await page.evaluate(() => document.activeElement.className);
  await page.getByRole("button", { name: "Undo" }).click();
  return seen;
}

async function drawByMouse(page, points) {
  await page.mouse.move(...points[0]);
  await page.mouse.down();
  for (const point of points.slice(1)) await page.mouse.move(...point, { steps: 3 });
  await page.mouse.up();
}

// As quick as no finger is; a tap that follows must count all the same.
async function drawByTouch(finger, points) {
  const send = (type, touchPoints) => finger.send("Input.dispatchTouchEvent", { type, touchPoints });
  await send("touchStart", [{ x: points[0][0], y: points[0][1] }]);
  for (const [x, y] of points.slice(1)) await send("touchMove", [{ x, y }]);
  await send("touchEnd", []);
}

async function bringPictures(page, { pictures }) {
  await page.locator("#way").selectOption({ label: "Pictures in files" });
  const seen = { before: await page.locator("#agree").isDisabled() };
  await page.locator("#way-place input[type=file]").first().setInputFiles(pictures);
  await page.waitForSelector(".picture", LIMIT);
  await page.waitForSelector("#way-place input[type=file]:enabled", LIMIT);
  seen.notes = await page.locator("#way-place [role=status] p").allTextContents();
  seen.isTurned = await page.locator("#way-place input[type=checkbox]").isChecked();
  await page.locator("#way").selectOption({ label: "Draw them" });
  await page.locator("#way").selectOption({ label: "Pictures in files" });
  return seen;
}

async function bringTable(page, { table, refused }) {
  const [input, problem] = [page.locator("#way-place input[type=file]"), page.locator("#own-problem")];
  const seen = { before: await page.locator("#agree").isDisabled() };
  await input.setInputFiles(refused);
  await page.waitForSelector(".refused", LIMIT);
  seen.refused = await problem.textContent();
  seen.afterRefusal = await page.locator("#agree").isDisabled();
  await input.setInputFiles(table);
  await page.waitForSelector(".preview", LIMIT);
  seen.notes = await page.locator(".found > p").allTextContents();
  seen.preview = await page.locator(".preview tbody tr").first().locator("td").allTextContents();
  seen.leftOut = await page.locator(".preview thead .left-out").allTextContents();
  return seen;
}
