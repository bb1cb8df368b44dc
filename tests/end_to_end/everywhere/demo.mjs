// node demo.mjs CHROMIUM PAGE: uses the site's demo as a reader does, and prints what it shows, as JSON.
// stdin: {queries, texts, lines, topic, likes, dislikes}.
import { readFileSync } from "node:fs";
import { loadedBytes, Reader } from "./reader.mjs";

const [executablePath, address] = process.argv.slice(2);
const { queries, texts, lines, topic, likes, dislikes } = JSON.parse(readFileSync(0, "utf8"));
const PHONE = { width: 360, height: 740 };

const reader = await Reader.launch(executablePath, address);
const shown = { problems: reader.problems, violations: {}, searches: [] };

async function open(options) {
  const page = await reader.open("", options);
  // The keyboard alone reaches and presses the button.
  await page.locator("#demo-start").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.getElementById("demo-forms").disabled);
  return page;
}

const items = (page, list) =>
  page.$$eval(`#${list} > li`, (found) =>
    found.map((item) => ({
      text: item.querySelector("a, .demo-line").textContent,
      link: item.querySelector("a")?.getAttribute("href"),
      score: Number(item.querySelector(".demo-score").textContent),
    })),
  );

// Fill in a field, and wait until the list below it belongs to what the field has.
async function fill(page, field, value, status) {
  await page.locator(`#${status}`).evaluate((place) => (place.textContent = ""));
  await page.fill(`#${field}`, value);
  await page.waitForFunction((id) => document.getElementById(id).textContent, status);
}

try {
  const page = await open({ colorScheme: "light" });
  shown.bytes = await loadedBytes(page);
  shown.embeddings = await page.evaluate(async (texts) => {
    const embeddings = [];
    for (const text of texts) embeddings.push([...(await globalThis.edgeembedDemo.encode(text)).embedding]);
    return embeddings;
  }, texts);
  for (const query of queries) {
    await fill(page, "demo-query", query, "demo-search-status");
    shown.searches.push(await items(page, "demo-sections"));
  }
  shown.tokens = await page.$$eval("#demo-tokens code", (found) => found.map((token) => token.textContent));
  shown.status = await page.textContent("#demo-search-status");
  await page.fill("#demo-lines", lines.join("\n"));
  await fill(page, "demo-rank-query", topic, "demo-rank-status");
  shown.ranking = await items(page, "demo-ranking");
  await page.fill("#demo-rank-query", "");
  for (const [kind, liked] of [["like", likes], ["dislike", dislikes]]) {
    for (const line of liked) {
      await page.locator("#demo-rank-status").evaluate((place) => (place.textContent = ""));
      await page.getByRole("button", { name: `${kind}: ${line}`, exact: true }).press("Enter");
      await page.waitForFunction(() => document.getElementById("demo-rank-status").textContent);
    }
  }
  shown.interests = await items(page, "demo-ranking");
  shown.violations.light = await reader.violations(page);
  await page.close();

  const phone = await open({ colorScheme: "dark", viewport: PHONE, isMobile: true, hasTouch: true });
  await fill(phone, "demo-query", queries[0], "demo-search-status");
  shown.overflow = await phone.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  shown.scheme = await phone.evaluate(() => document.body.getAttribute("data-md-color-scheme"));
  shown.violations["dark, phone"] = await reader.violations(phone);
  if (process.env.SCREENSHOT) await phone.screenshot({ path: process.env.SCREENSHOT, fullPage: true });
  console.log(JSON.stringify(shown));
} finally {
  await reader.close();
}
