/**
 * Vectors in the shapes in which services send and clients want them: lists of numbers, or base64 of little-endian
 * float32. The text of a vector that needs no change is kept as it came.
 */
import type { Encoding } from './request.ts';

/** `json`: the vector as JSON text, a list of numbers or a string of base64. */
export type Vector = { encoding: Encoding; json: Buffer | string } | number[];

/**
 * The vector as JSON text in the encoding that is wanted. Base64 that holds no float32 is a service's own encoding, which
 * only its clients can read: it stays as it came. Throws for other text that is no vector.
 */
export function vectorJson(vector: Vector, wanted: Encoding): Buffer | string {
  if (Array.isArray(vector)) return wanted === 'base64' ? base64Json(vector) : JSON.stringify(vector);
  if (vector.encoding === wanted) return vector.json;
  const value: unknown = JSON.parse(vector.json.toString());
  if (wanted === 'base64') return base64Json(numbersOf(value));
  const floats = floatsOf(String(value));
  return floats === undefined ? vector.json : JSON.stringify(floats);
}

/** The list, if it is one of finite numbers; throws otherwise. */
export function numbersOf(value: unknown): number[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every((number) => Number.isFinite(number))) {
    throw new TypeError('not a vector');
  }
  return value as number[];
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

function base64Json(numbers: readonly number[]): string {
  const bytes = Buffer.from(Float32Array.from(numbers).buffer);
  if (!LITTLE_ENDIAN) bytes.swap32();
  return `"${bytes.toString('base64')}"`;
}

/** Undefined when it holds something else than finite float32. */
function floatsOf(base64: string): number[] | undefined {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  const numbers = new Array<number>(bytes.length / 4);
  for (let index = 0; index < numbers.length; index += 1) numbers[index] = shortest(bytes.readFloatLE(index * 4));
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** The double with the fewest digits that is this float32, so that no digits are shown which the vector does not have. */
function shortest(float: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const candidate = Number(float.toPrecision(digits));
    if (Math.fround(candidate) === float) return candidate;
  }
  return Number(float.toPrecision(9));
}
