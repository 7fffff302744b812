/** Vectors in one byte per dimension: their number of dimensions (4 bytes), then for each a factor (4 bytes) and its values. */

const HEADER_BYTES = 4;
const FACTOR_BYTES = 4;
const LARGEST = 127;

/** @param vectors of equal length, of any norm */
export function packVectors(vectors: readonly Float32Array[]): Buffer {
  const dimensions = vectors[0]?.length ?? 0;
  const packed = Buffer.alloc(HEADER_BYTES + vectors.length * (FACTOR_BYTES + dimensions));
  packed.writeUInt32LE(dimensions, 0);
  vectors.forEach((vector, index) => {
    const at = HEADER_BYTES + index * (FACTOR_BYTES + dimensions);
    const unit = unitOf(vector);
    const factor = unit.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / LARGEST;
    packed.writeFloatLE(factor, at);
    if (factor === 0) return;
    unit.forEach((value, dimension) => {
      packed.writeInt8(Math.round(value / factor), at + FACTOR_BYTES + dimension);
    });
  });
  return packed;
}

/** Several packed lists as one; undefined if their dimensions differ. */
export function joinPacked(lists: readonly Buffer[]): Buffer | undefined {
  const [first, ...others] = lists;
  if (first === undefined) return packVectors([]);
  const head = first.subarray(0, HEADER_BYTES);
  if (others.some((list) => !list.subarray(0, HEADER_BYTES).equals(head))) return undefined;
  return Buffer.concat([first, ...others.map((list) => list.subarray(HEADER_BYTES))]);
}

/** The vector with a norm of 1; zeros stay zeros. */
export function unitOf(vector: Float32Array): Float32Array {
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return norm === 0 ? vector : vector.map((value) => value / norm);
}

/** The cosine of each packed vector with a unit vector; empty if their dimensions differ. */
export function cosines(packed: Buffer, unit: Float32Array): Float32Array {
  const dimensions = packed.readUInt32LE(0);
  if (dimensions !== unit.length) return new Float32Array(0);
  const values = new Int8Array(packed.buffer, packed.byteOffset, packed.length);
  const count = (packed.length - HEADER_BYTES) / (FACTOR_BYTES + dimensions);
  const results = new Float32Array(count);
  for (let index = 0, at = HEADER_BYTES; index < count; index += 1, at += FACTOR_BYTES + dimensions) {
    let sum = 0;
    const first = at + FACTOR_BYTES;
    for (let dimension = 0; dimension < dimensions; dimension += 1)
      sum += unit[dimension]! * values[first + dimension]!;
    results[index] = sum * packed.readFloatLE(at);
  }
  return results;
}
