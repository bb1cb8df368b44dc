// Best matches by meaning, above the results that the theme's search finds by words.
import { fetchBytes, fetchJson } from "./files.js";
import { SectionIndex } from "./ranking.js";
import { StaticEncoder } from "./static_encoder.js";

const BUNDLE = "micro";
const SECTIONS = 4;
const PART_CHARACTERS = 160;
const SITE = new URL("../", import.meta.url);

const field = document.querySelector("[data-md-component=search-query]");
const result = document.querySelector("[data-md-component=search-result]");

/** The list of matches. Its links have the theme's classes, so that they look and react to keys as the others do. */
class Matches {
  #list = Object.assign(document.createElement("ol"), { className: "md-search-result__list" });
  #heading = Object.assign(document.createElement("h2"), { className: "search-meaning__heading" });
  #place = Object.assign(document.createElement("section"), { className: "search-meaning", hidden: true });

  /** @param {Element} after What the list comes after. */
  constructor(after) {
    this.#heading.textContent = "Best matches by meaning";
    this.#heading.id = "search-meaning";
    this.#place.setAttribute("aria-labelledby", this.#heading.id);
    this.#place.setAttribute("aria-live", "polite");
    this.#place.append(this.#heading, this.#list);
    after.after(this.#place);
  }

  /** Show sections as `SectionIndex.search` returns them; none hides the list. */
  show(hits) {
    this.#list.replaceChildren(...hits.map(item));
    this.#place.hidden = !hits.length;
  }
}

function item({ section, text }) {
  const beginning = text.length > PART_CHARACTERS ? `${text.slice(0, PART_CHARACTERS)} ...` : text;
  const article = Object.assign(document.createElement("article"), {
    className: "md-search-result__article md-typeset",
  });
  article.append(
    Object.assign(document.createElement("h3"), { textContent: section.title }),
    Object.assign(document.createElement("p"), { textContent: beginning }),
  );
  const link = Object.assign(document.createElement("a"), {
    className: "md-search-result__link",
    href: new URL(section.location, SITE).href,
    tabIndex: -1,
  });
  link.append(article);
  const created = Object.assign(document.createElement("li"), { className: "md-search-result__item" });
  created.append(link);
  return created;
}

/** Load encoder and index, and show matches for what the field has from now on. */
async function start() {
  const [encoder, sections, vectors] = await Promise.all([
    StaticEncoder.load(BUNDLE),
    fetchJson("index/sections.json"),
    fetchBytes(`index/${BUNDLE}.bin`),
  ]);
  const index = new SectionIndex(sections, new Int8Array(vectors.buffer), encoder.manifest.dimension);
  const matches = new Matches(result.firstElementChild);
  const update = () => {
    const query = field.value.trim();
    matches.show(query ? index.search(encoder.encode(query), SECTIONS) : []);
  };
  field.addEventListener("input", update);
  field.form.addEventListener("reset", () => matches.show([]));
  update();
}

// Readers who do not search load nothing. If the encoder cannot be loaded, the theme's results are still there.
field?.addEventListener("input", () => start().catch((error) => console.info(`search by meaning: ${error.message}`)), {
  once: true,
});
