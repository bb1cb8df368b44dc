// Search in the site's sections, and ranking by likes and dislikes, as the Python runtime computes them.

/** Return the dot product of two vectors of the same length, the cosine of two L2-normalized ones. */
export function dot(first, second) {
  let sum = 0;
  for (let index = 0; index < first.length; index++) sum += first[index] * second[index];
  return sum;
}

/** The sections of the site; each has one int8 vector, 127 times a unit vector, for each of its parts. */
export class SectionIndex {
  constructor(sections, vectors, dimension) {
    this.sections = sections;
    this.parts = sections.flatMap((section) => section.parts.map((text) => ({ section, text })));
    this.parts.forEach((part, row) => (part.vector = vectors.subarray(row * dimension, (row + 1) * dimension)));
  }

  /**
   * Return the best sections for a query, each with its best part.
   *
   * @param {Float32Array} query The query's embedding.
   * @param {number} count The number of sections.
   * @returns {{section: {location: string, title: string}, text: string, score: number}[]}
   */
  search(query, count) {
    const best = new Map();
    for (const { section, text, vector } of this.parts) {
      const score = dot(vector, query) / 127;
      if (score > (best.get(section)?.score ?? -Infinity)) best.set(section, { section, text, score });
    }
    return [...best.values()].sort((first, second) => second.score - first.score).slice(0, count);
  }
}

// The constants of the runtime's InterestSettings.
const SHIFT = 0.1;
const QUERY_WEIGHT = 0.8;

/** Centers of interest and of disinterest; edgeembed_runtime.SemanticRanker documents the formulas. */
export class Interests {
  #centers = { like: [], dislike: [] };

  /** @param {number} nearCosine The cosine from which on a text joins a center. */
  constructor(nearCosine) {
    this.nearCosine = nearCosine;
  }

  get isEmpty() {
    return !Object.values(this.#centers).some((centers) => centers.length);
  }

  /** Learn that the reader likes or dislikes a text: `kind` is "like" or "dislike". */
  learn(kind, embedding) {
    const centers = this.#centers[kind];
    const cosines = centers.map(({ vector }) => dot(vector, embedding));
    const nearest = cosines.indexOf(Math.max(...cosines));
    if (nearest < 0 || cosines[nearest] < this.nearCosine) {
      centers.push({ vector: Array.from(embedding), uses: 1 });
      return;
    }
    const center = centers[nearest];
    const moved = center.vector.map((value, index) => value + SHIFT * (embedding[index] - value));
    const norm = Math.sqrt(dot(moved, moved));
    center.vector = moved.map((value) => value / norm);
    center.uses += 1;
  }

  /** Return the score of a text; `query` is an embedding, or null. */
  score(embedding, query) {
    const interest = this.#pull("like", embedding) - this.#pull("dislike", embedding);
    if (!query) return interest;
    const cosine = dot(query, embedding);
    return this.isEmpty ? cosine : (1 - QUERY_WEIGHT) * interest + QUERY_WEIGHT * cosine;
  }

  #pull(kind, embedding) {
    const pulls = this.#centers[kind].map(({ vector, uses }) => dot(vector, embedding) * (uses / (uses + 1)));
    return Math.max(0, ...pulls);
  }
}
