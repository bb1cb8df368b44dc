// node site.mjs CHROMIUM SITE: searches the site as a reader does, checks pages with axe, and prints what it shows, as JSON.
// stdin: {queries, pages}.
import { readFileSync } from "node:fs";
import { loadedBytes, Reader } from "./reader.mjs";

const [executablePath, address] = process.argv.slice(2);
const { queries, pages } = JSON.parse(readFileSync(0, "utf8"));
const FIELD = "[data-md-component=search-query]";
const MEANING = ".search-meaning a";
const WORDS = ".md-search-result__list:last-child a";

const reader = await Reader.launch(executablePath, address);
const shown = { problems: reader.problems, violations: {}, searches: [] };

async function search(page, query, list) {
  await page.locator(FIELD).fill("");
  await page.waitForFunction((found) => !document.querySelector(found), MEANING);
  await page.locator(FIELD).pressSequentially(query);
  await page.waitForSelector(list);
  return page.$$eval(list, (links) => links.map((link) => link.href));
}

try {
  const page = await reader.open("", { colorScheme: "light" });
  const before = await loadedBytes(page);
  await page.keyboard.press("/"); // the theme's key for its search
  for (const query of queries) shown.searches.push(await search(page, query, MEANING));
  shown.bytes = (await loadedBytes(page)) - before;
  shown.words = (await page.$$(WORDS)).length;
  const [best] = await page.$$eval(MEANING, (links) => links.map((link) => link.href));
  await page.keyboard.press("ArrowDown");
  shown.focused = (await page.evaluate(() => document.activeElement.href)) === best;
  await page.keyboard.press("Enter");
  await page.waitForURL(best);
  await page.close();

  for (const colorScheme of ["light", "dark"]) {
    for (const path of pages) {
      const checked = await reader.open(path, { colorScheme });
      shown.violations[`${path}, ${colorScheme}`] = await reader.violations(checked);
      await checked.close();
    }
    const dialog = await reader.open("", { colorScheme });
    await dialog.keyboard.press("/");
    await search(dialog, queries[0], MEANING);
    shown.violations[`search, ${colorScheme}`] = await reader.violations(dialog);
    await dialog.close();
  }

  const offline = await reader.open("", {}, /demo\/micro\//);
  await offline.keyboard.press("/");
  shown.fallback = await search(offline, "LangChain", WORDS);
  shown.hidden = await offline.locator(".search-meaning").count();
  console.log(JSON.stringify(shown));
} finally {
  await reader.close();
}
