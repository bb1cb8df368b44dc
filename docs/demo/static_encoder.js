// An encoder without attention, and so without an engine: the sum of the vectors of a text's tokens, and a linear layer.
// The documentation of the tensor file describes its model.
import { fetchBytes, fetchJson } from "./files.js";
import { dot } from "./ranking.js";
import { Tokenizer } from "./tokenizer.js";

const TYPES = { F32: Float32Array, I8: Int8Array, U8: Uint8Array };

/** Return the tensors of a safetensors file by name, and its metadata as `metadata`. */
function readTensors(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const tensors = { metadata };
  for (const [name, { dtype, data_offsets: [begin, end] }] of Object.entries(entries))
    tensors[name] = new TYPES[dtype](bytes.slice(8 + length + begin, 8 + length + end).buffer);
  return tensors;
}

export class StaticEncoder {
  #tokenizer;
  #tensors;

  /** Load a bundle; `onBytes` is that of `fetchBytes`. */
  static async load(bundle, onBytes) {
    const encoder = new StaticEncoder();
    encoder.manifest = await fetchJson(`${bundle}/edgeembed.json`, onBytes);
    const [model, tokenizer] = await Promise.all([
      fetchBytes(`${bundle}/${encoder.manifest.model_file}`, onBytes),
      Tokenizer.load(bundle, encoder.manifest.max_seq_length, onBytes),
    ]);
    encoder.#tensors = readTensors(model);
    encoder.#tokenizer = tokenizer;
    return encoder;
  }

  /**
   * Encode a text.
   *
   * @param {string} text
   * @returns {Float32Array} The L2-normalized embedding.
   */
  encode(text) {
    const tensors = this.#tensors;
    const total = this.#sum(this.#tokenizer.encode(text).ids);
    const embedding = new Float32Array(this.manifest.dimension);
    for (let row = 0; row < embedding.length; row++) {
      const weights = tensors["head.weight"].subarray(row * total.length, (row + 1) * total.length);
      embedding[row] = dot(weights, total) * tensors["head.scale"][row] + tensors["head.bias"][row];
    }
    const norm = Math.sqrt(dot(embedding, embedding)) || 1;
    return embedding.map((value) => value / norm);
  }

  /** Return the sum of the vectors of tokens, whose values of a few bits are packed into bytes. */
  #sum(ids) {
    const { "cbow.weight": codes, "cbow.scale": scales, metadata } = this.#tensors;
    const bits = Number(metadata.table_bits);
    const [mask, middle] = [2 ** bits - 1, (2 ** bits - 1) / 2];
    const bytes = codes.length / scales.length;
    const total = new Float64Array((bytes * 8) / bits);
    for (const id of ids) {
      for (let index = 0; index < total.length; index++) {
        const bit = index * bits;
        const code = (codes[id * bytes + (bit >> 3)] >> (bit & 7)) & mask;
        total[index] += (code - middle) * scales[id];
      }
    }
    return total;
  }
}
