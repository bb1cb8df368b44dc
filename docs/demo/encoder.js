// The encoder of the demo: a bundle's tokenizer and ONNX model, on one thread of the browser.
import { address, fetchBytes, fetchJson } from "./files.js";
import { Tokenizer } from "./tokenizer.js";

const BUNDLE = "nano";
const ENGINE = "engine/ort.wasm.bundle.min.mjs";
const ENGINE_BINARY = "engine/ort-wasm-simd-threaded.wasm";

export class Encoder {
  #model;
  #runtime;
  #tokenizer;
  // ONNX Runtime for web pages runs one text at a time.
  #lastRun = Promise.resolve();

  /** Load the engine and the bundle; `onBytes` is that of `fetchBytes`. */
  static async load(onBytes) {
    const encoder = new Encoder();
    encoder.manifest = await fetchJson(`${BUNDLE}/edgeembed.json`, onBytes);
    const [binary, model, tokenizer, runtime] = await Promise.all([
      fetchBytes(ENGINE_BINARY, onBytes),
      fetchBytes(`${BUNDLE}/${encoder.manifest.model_file}`, onBytes),
      Tokenizer.load(BUNDLE, encoder.manifest.max_seq_length, onBytes),
      import(address(ENGINE)),
    ]);
    // Several threads would need HTTP headers that a static host does not send.
    Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: binary.buffer });
    encoder.#runtime = runtime;
    encoder.#model = await runtime.InferenceSession.create(model, { executionProviders: ["wasm"] });
    encoder.#tokenizer = tokenizer;
    return encoder;
  }

  /**
   * Encode a text.
   *
   * @param {string} text
   * @returns {Promise<{embedding: Float32Array, tokens: string[], milliseconds: number}>} The L2-normalized embedding,
   *   the tokens that were read, and the time for both.
   */
  encode(text) {
    const run = this.#lastRun.then(() => this.#encode(text));
    this.#lastRun = run.catch(() => {});
    return run;
  }

  async #encode(text) {
    const start = performance.now();
    const { ids, tokens } = this.#tokenizer.encode(text);
    const tensor = (values) => new this.#runtime.Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const feeds = { input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)) };
    const { sentence_embedding } = await this.#model.run(feeds);
    return { embedding: sentence_embedding.data, tokens, milliseconds: performance.now() - start };
  }
}
