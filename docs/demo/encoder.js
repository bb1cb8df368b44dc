// The encoder of the demo: a bundle's tokenizer and ONNX model, on one thread of the browser.

const ENGINE = "engine/ort.wasm.bundle.min.mjs";
const ENGINE_BINARY = "engine/ort-wasm-simd-threaded.wasm";
const TOKENIZER = "engine/tokenizers.min.mjs";

/** Return the absolute address of a file of the demo. */
const address = (file) => new URL(file, import.meta.url).href;

/**
 * Fetch a file of the demo.
 *
 * @param {string} file Its place beside this module.
 * @param {(bytes: number) => void} onBytes Receives the number of bytes of each part that arrives.
 * @returns {Promise<Uint8Array>} Its content.
 */
export async function fetchBytes(file, onBytes = () => {}) {
  const response = await fetch(address(file));
  if (!response.ok) throw new Error(`${file}: status ${response.status}`);
  const parts = [];
  const reader = response.body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value);
    onBytes(read.value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Fetch a JSON file of the demo; the arguments are those of `fetchBytes`. */
export async function fetchJson(file, onBytes) {
  return JSON.parse(new TextDecoder().decode(await fetchBytes(file, onBytes)));
}

export class Encoder {
  #model;
  #runtime;
  #tokenizer;
  // ONNX Runtime for web pages runs one text at a time.
  #lastRun = Promise.resolve();

  /** Load the engine and the bundle; `onBytes` is that of `fetchBytes`. */
  static async load(onBytes) {
    const encoder = new Encoder();
    encoder.manifest = await fetchJson("bundle/edgeembed.json", onBytes);
    const [binary, model, tokenizer, config, runtime, tokenizers] = await Promise.all([
      fetchBytes(ENGINE_BINARY, onBytes),
      fetchBytes(`bundle/${encoder.manifest.model_file}`, onBytes),
      fetchJson("bundle/tokenizer.json", onBytes),
      fetchJson("bundle/tokenizer_config.json", onBytes),
      import(address(ENGINE)),
      import(address(TOKENIZER)),
    ]);
    // Several threads would need HTTP headers that a static host does not send.
    Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: binary.buffer });
    encoder.#runtime = runtime;
    encoder.#model = await runtime.InferenceSession.create(model, { executionProviders: ["wasm"] });
    encoder.#tokenizer = new tokenizers.Tokenizer(tokenizer, config);
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
    const { ids, tokens } = this.#truncated(this.#tokenizer.encode(text));
    const tensor = (values) => new this.#runtime.Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const feeds = { input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)) };
    const { sentence_embedding } = await this.#model.run(feeds);
    return { embedding: sentence_embedding.data, tokens, milliseconds: performance.now() - start };
  }

  /** Keep as many tokens as the model reads: the first ones, and the separator at the end. */
  #truncated({ ids, tokens }) {
    const count = this.manifest.max_seq_length;
    if (ids.length <= count) return { ids, tokens };
    const kept = (values) => [...values.slice(0, count - 1), values.at(-1)];
    return { ids: kept(ids), tokens: kept(tokens) };
  }
}
