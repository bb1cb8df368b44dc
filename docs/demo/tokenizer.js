// The tokenizer of a bundle.
import { address, fetchJson } from "./files.js";

const TOKENIZERS = "engine/tokenizers.min.mjs";

export class Tokenizer {
  #tokenizer;
  #count;

  /**
   * Load the tokenizer of a bundle.
   *
   * @param {string} bundle The bundle's folder.
   * @param {number} count The number of tokens that its model reads.
   * @param {(bytes: number) => void} onBytes That of `fetchBytes`.
   */
  static async load(bundle, count, onBytes) {
    const [tokenizer, config, { Tokenizer: Library }] = await Promise.all([
      fetchJson(`${bundle}/tokenizer.json`, onBytes),
      fetchJson(`${bundle}/tokenizer_config.json`, onBytes),
      import(address(TOKENIZERS)),
    ]);
    const loaded = new Tokenizer();
    loaded.#tokenizer = new Library(tokenizer, config);
    loaded.#count = count;
    return loaded;
  }

  /** Return the ids and the tokens of a text, as many as the model reads: the first ones, and the separator at the end. */
  encode(text) {
    const { ids, tokens } = this.#tokenizer.encode(text);
    if (ids.length <= this.#count) return { ids, tokens };
    const kept = (values) => [...values.slice(0, this.#count - 1), values.at(-1)];
    return { ids: kept(ids), tokens: kept(tokens) };
  }
}
