// Files beside the modules of the demo.

/** Return the absolute address of a file of the demo. */
export const address = (file) => new URL(file, import.meta.url).href;

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
