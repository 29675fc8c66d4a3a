// How readable the texts of a page are: contrast by WCAG 2.2, which wants 4.5 of small texts.

const LEAST = 4.5;

// A line for each text that is shown with less.
export function findLowContrast(page) {
  return page.evaluate(find, LEAST);
}

// Runs in the page, so it can use nothing from outside of itself.
function find(least) {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const measure = ([r, g, b]) => {
    const [red, green, blue] = [r, g, b].map((part) =>
      part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const findBackground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility() || element.closest("noscript, :disabled")) continue;
    const [one, other] = [parse(getComputedStyle(element).color), findBackground(element)].map(measure);
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least) low.push(`contrast ${contrast.toFixed(1)} of "${text.slice(0, 40)}"`);
  }
  return low;
}
