// Moves what a page has in place of a drawing area: a slider for each feature, a list for each category, or the step of a
// window.

const MOST = 12; // sliders that are moved

// {kind, moved, names} with how many sliders changed the answer; what is wrong goes to `problems`.
export async function moveInputs(page, problems, readAnswer) {
  const told = await page.evaluate(() => JSON.parse(document.querySelector("#page-data").textContent));
  const { form, features, groups, shape } = told;
  const grouped = new Set(groups.flatMap((group) => group.features));
  const alone = features.filter((_, place) => !grouped.has(place));
  if (form === "table") {
    const chosen = await choose(page, problems, groups);
    const moves = await moveSliders(page, problems, readAnswer, alone);
    if (!moves.moved && !chosen) problems.push("no slider changes the answer");
    return moves;
  }
  if (form === "series") return chooseStep(page, problems, [...alone, ...groups], shape[0]);
  return { kind: "neither" };
}

// Chooses the last value of each category; how many lists there are.
async function choose(page, problems, groups) {
  const lists = page.locator("#signal select");
  const count = await lists.count();
  if (count !== groups.length) problems.push(`${count} lists for ${groups.length} categories`);
  for (let i = 0; i < count; i++) {
    await lists.nth(i).selectOption({ index: groups[i].values.length - 1 + groups[i].has_none });
    const shown = await lists.nth(i).locator("option:checked").textContent();
    if (shown !== groups[i].values.at(-1)) problems.push(`${groups[i].name} is ${shown}`);
  }
  return count;
}

async function moveSliders(page, problems, readAnswer, features) {
  const sliders = page.locator("#signal input[type=range]");
  const rows = page.locator("#signal .slider:has(input)");
  const count = await sliders.count();
  if (count !== features.length) problems.push(`${count} sliders for ${features.length} features`);
  let moved = 0;
  for (let i = 0; i < Math.min(MOST, count); i++) {
    const before = (await readAnswer(page)).bars;
    const number = page.locator("#signal input[type=number]").nth(i);
    for (const [key, end] of [["Home", "lowest"], ["End", "highest"]]) {
      await sliders.nth(i).press(key);
      const shown = Number(await number.inputValue());
      const wanted = features[i][end];
      if (Math.abs(shown - wanted) > 1e-4 * (1 + Math.abs(wanted))) problems.push(`${features[i].name} at ${key} is ${shown}`);
    }
    await page.waitForTimeout(100);
    moved += (await readAnswer(page)).bars !== before;
    const text = (await rows.nth(i).textContent()).replaceAll("\u200b", "");
    if (!text.includes(features[i].name) || !text.includes(features[i].unit)) problems.push(`a slider without its name: ${text}`);
  }
  await page.click("#next"); // a test example again
  return { kind: "table", moved, names: features.slice(0, MOST).map(({ name }) => name) };
}

async function chooseStep(page, problems, features, steps) {
  const before = await page.locator("#signal dl").textContent();
  await page.locator("#step").press("End");
  const [label, after] = [await page.locator("#signal label").textContent(), await page.locator("#signal dl").textContent()];
  if (label !== `Step ${steps} of ${steps}`) problems.push(`the last step is called ${label}`);
  // A category may have the same value at both ends.
  if (before === after && features.some(({ values }) => !values)) problems.push("all steps have the same values");
  for (const { name } of features) if (!after.includes(name)) problems.push(`a channel without its name: ${name}`);
  return { kind: "series", moved: 1, names: features.map(({ name }) => name) };
}
