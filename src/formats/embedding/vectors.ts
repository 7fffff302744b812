/**
 * Converts vectors between the encodings of services and clients: lists of numbers, or base64 of little-endian float32.
 * A vector already in the wanted encoding keeps its text.
 */
import type { Encoding } from './request.ts';

/** `json`: the vector as JSON text, a list of numbers or a base64 string. */
export type Vector = { encoding: Encoding; json: Buffer | string } | number[];

/**
 * The vector as JSON text in the wanted encoding. Base64 that is not float32 is the service's own encoding and stays
 * unchanged. Throws for text that is not a vector.
 */
export function vectorJson(vector: Vector, wanted: Encoding): Buffer | string {
  if (Array.isArray(vector)) return wanted === 'base64' ? base64Json(vector) : JSON.stringify(vector);
  if (vector.encoding === wanted) return vector.json;
  const value: unknown = JSON.parse(vector.json.toString());
  if (wanted === 'base64') return base64Json(numbersOf(value));
  const floats = floatsOf(String(value));
  return floats === undefined ? vector.json : JSON.stringify(floats);
}

/** The value as a list of finite numbers. Throws otherwise. */
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

/** Undefined if the bytes are not finite float32 values. */
function floatsOf(base64: string): number[] | undefined {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  const numbers = new Array<number>(bytes.length / 4);
  for (let index = 0; index < numbers.length; index += 1) numbers[index] = shortest(bytes.readFloatLE(index * 4));
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** The shortest decimal that rounds to this float32, so that no digits beyond its precision appear. */
function shortest(float: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const candidate = Number(float.toPrecision(digits));
    if (Math.fround(candidate) === float) return candidate;
  }
  return Number(float.toPrecision(9));
}
