// Drives the page of a run: `node drive_report.mjs report.html [folder for screenshots]`.
//
// It is opened from its file, on a desktop and on a phone, light and dark. Its first screen must hold the number, what is
// reached without a model and, on a desktop, the top of the plot; a click and the arrow keys must change the plot;
// nothing may leave the page, and its console must stay empty. Exit code 1 if anything is wrong, with a line for each.

import path from "node:path";
import { pathToFileURL } from "node:url";
import { SIZES, findOverflow, launch, openPage, takeShot } from "./open_page.mjs";

const [, , pagePath, shots] = process.argv;

// Which sketches are shown, as "metric round".
const readShown = (page) =>
  page.$$eval("#progress figure", (figures) =>
    figures.filter((figure) => figure.getBoundingClientRect().height > 0).map(({ dataset }) => `${dataset.result} ${dataset.axis}`),
  );

async function expectShown(page, wanted, how, problems) {
  const shown = await readShown(page);
  if (shown.join() !== wanted) problems.push(`${how}: expected the plot ${wanted}, not ${shown.join(" and ") || "none"}`);
}

// Whether an element ends (or, of a plot, begins) on the first screen.
async function checkFirstScreen(page, size, problems) {
  const parts = { ".number strong": "bottom", ".trivial p": "bottom" };
  if (size === SIZES.desktop) parts["#progress figure img"] = "top";
  for (const [selector, side] of Object.entries(parts)) {
    const box = await page.locator(selector).first().boundingBox();
    const end = box && box.y + (side === "bottom" ? box.height : 60);
    if (!box || end > size.height) problems.push(`${selector} is not on the first screen, but ends at ${end}`);
  }
}

async function choose(page, problems) {
  await expectShown(page, "metric round", "at first", problems);
  await page.locator('[value="loss"]').click();
  await expectShown(page, "loss round", "after a click on the loss", problems);
  await page.locator('[value="metric"]').click();
  await page.locator('[name="axis"][value="round"]').focus();
  await page.keyboard.press("ArrowRight");
  await expectShown(page, "metric virtual_time", "after an arrow key", problems);
  const outline = await page.evaluate(() => getComputedStyle(document.querySelector(":focus + span")).outlineStyle);
  if (outline === "none") problems.push("the focus on a choice is not seen");
  await page.keyboard.press("ArrowLeft");
  await expectShown(page, "metric round", "after the arrow key back", problems);
  const countFolded = () => page.locator("details:not([open])").count();
  const folded = await countFolded();
  await page.locator("details:not([open]) summary").first().focus();
  await page.keyboard.press("Enter");
  if ((await countFolded()) !== folded - 1) problems.push("Enter does not unfold a table");
}

async function visit(browser, url, kind, colorScheme) {
  const size = SIZES[kind];
  const { context, page, problems } = await openPage(browser, url, { viewport: size, colorScheme });
  await page.goto(url);
  await checkFirstScreen(page, size, problems);
  problems.push(...(await findOverflow(page, size)));
  await takeShot(page, shots, `report_${kind}_${colorScheme}`);
  const pictures = await page.$$eval("img", (images) => images.map(({ alt, naturalWidth }) => ({ alt, naturalWidth })));
  const areWhole = pictures.every(({ alt, naturalWidth }) => alt && naturalWidth);
  if (!pictures.length || !areWhole) problems.push("a picture lacks its text, or is not shown");
  await choose(page, problems);
  await context.close();
  console.log(`report ${kind}_${colorScheme}: ${pictures.length} pictures`);
  return problems.map((problem) => `${kind}_${colorScheme}: ${problem}`);
}

const browser = await launch();
const problems = [];
const url = pathToFileURL(path.resolve(pagePath)).href;
for (const kind of Object.keys(SIZES)) {
  for (const scheme of ["light", "dark"]) problems.push(...(await visit(browser, url, kind, scheme)));
}
await browser.close();
for (const problem of problems) console.error(`WRONG ${problem}`);
process.exitCode = problems.length ? 1 : 0;
