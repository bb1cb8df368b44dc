// The demo page: loads the encoder on request, searches the site, and ranks the reader's lines.
import { Encoder } from "./encoder.js";
import { fetchBytes, fetchJson } from "./files.js";
import { Interests, SectionIndex } from "./ranking.js";

const SECTIONS = 8;
const PART_CHARACTERS = 160;

const byId = (id) => document.getElementById(`demo-${id}`);

/** Return an element with a class and a text. */
function element(tag, name, text, attributes = {}) {
  const created = Object.assign(document.createElement(tag), { className: name, textContent: text });
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

const score = (value) => element("span", "demo-score", value.toFixed(2));

class Demo {
  #embeddings = new Map();

  constructor(encoder, index) {
    this.encoder = encoder;
    this.index = index;
    this.#forget();
  }

  /** Listen to the fields, and show a first ranking. */
  start() {
    const search = latestOnly((isLatest) => this.#search(isLatest), byId("search-status"));
    const rank = latestOnly((isLatest) => this.#rank(isLatest), byId("rank-status"));
    byId("query").addEventListener("input", search);
    byId("lines").addEventListener("input", rank);
    byId("rank-query").addEventListener("input", rank);
    byId("forget").addEventListener("click", () => {
      this.#forget();
      rank();
    });
    byId("ranking").addEventListener("click", async ({ target }) => {
      const { kind, line } = target.closest("button")?.dataset ?? {};
      if (!kind) return;
      this.interests.learn(kind, await this.#embedding(line));
      await rank();
      const same = [...byId("ranking").querySelectorAll("button")];
      same.find((button) => button.dataset.kind === kind && button.dataset.line === line)?.focus();
    });
    return rank();
  }

  #forget() {
    this.interests = new Interests(this.encoder.manifest.near_cosine);
  }

  async #search(isLatest) {
    const query = byId("query").value;
    const result = query.trim() ? await this.encoder.encode(query) : null;
    if (!isLatest()) return "";
    const start = performance.now();
    const hits = result ? this.index.search(result.embedding, SECTIONS) : [];
    const searched = performance.now() - start;
    byId("tokens").replaceChildren(...(result?.tokens ?? []).map((token) => element("code", "", token)));
    byId("sections").replaceChildren(...hits.map(sectionItem));
    if (!result) return "Type a question.";
    return (
      `${result.tokens.length} tokens, ${result.milliseconds.toFixed(1)} ms to encode them, ` +
      `${searched.toFixed(1)} ms to search ${this.index.parts.length} parts of ${this.index.sections.length} sections`
    );
  }

  async #rank(isLatest) {
    const lines = byId("lines").value.split("\n").filter((line) => line.trim());
    const query = byId("rank-query").value;
    const start = performance.now();
    const embeddings = [];
    for (const line of lines) embeddings.push(await this.#embedding(line));
    const queryEmbedding = query.trim() ? (await this.encoder.encode(query)).embedding : null;
    if (!isLatest()) return "";
    const ranked = lines.map((line, row) => ({ line, score: this.interests.score(embeddings[row], queryEmbedding) }));
    ranked.sort((first, second) => second.score - first.score);
    byId("ranking").replaceChildren(...ranked.map(lineItem));
    return `${lines.length} texts, ${(performance.now() - start).toFixed(1)} ms`;
  }

  async #embedding(line) {
    if (!this.#embeddings.has(line)) this.#embeddings.set(line, (await this.encoder.encode(line)).embedding);
    return this.#embeddings.get(line);
  }
}

/**
 * Return a function that runs an update and shows the status that it returns, unless a later update has begun.
 *
 * @param {(isLatest: () => boolean) => Promise<string>} update
 * @param {HTMLElement} status
 */
function latestOnly(update, status) {
  let latest = 0;
  return async () => {
    const mine = ++latest;
    const isLatest = () => mine === latest;
    status.textContent = "";
    const text = await update(isLatest);
    if (isLatest()) status.textContent = text;
  };
}

function sectionItem({ section, text, score: value }) {
  const item = element("li", "", "");
  const beginning = text.length > PART_CHARACTERS ? `${text.slice(0, PART_CHARACTERS)} ...` : text;
  const link = element("a", "", section.title, { href: `../${section.location}` });
  item.append(link, score(value), element("span", "demo-part", beginning));
  return item;
}

function lineItem({ line, score: value }) {
  const item = element("li", "", "");
  item.append(element("span", "demo-line", line), score(value));
  for (const kind of ["like", "dislike"]) {
    const button = element("button", "demo-reaction", kind, { type: "button", "aria-label": `${kind}: ${line}` });
    Object.assign(button.dataset, { kind, line });
    item.append(button);
  }
  return item;
}

async function load() {
  const [start, progress, status] = [byId("start"), byId("progress"), byId("status")];
  start.disabled = true;
  progress.hidden = false;
  status.textContent = "Loading";
  const begin = performance.now();
  try {
    const [encoder, sections, vectors] = await Promise.all([
      Encoder.load((bytes) => (progress.value += bytes)),
      fetchJson("index/sections.json"),
      fetchBytes("index/nano.bin"),
    ]);
    const demo = new Demo(encoder, new SectionIndex(sections, new Int8Array(vectors.buffer), encoder.manifest.dimension));
    await demo.start();
    globalThis.edgeembedDemo = encoder;
  } catch (error) {
    status.textContent = `The encoder could not be loaded (${error.message}). Reload the page to try again.`;
    return;
  } finally {
    progress.hidden = true;
  }
  const seconds = (performance.now() - begin) / 1000;
  status.textContent = `Loaded ${(progress.value / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s`;
  start.hidden = true;
  byId("forms").disabled = false;
  byId("query").focus();
}

byId("start").addEventListener("click", load);
