/** JSON as bytes and as values: see the functions. (Contract; the implementation follows.) */

/** One top-level member of a JSON object, as byte offsets into its document. */
export interface Member {
  key: string;
  /** Offset of the key's opening quote. */
  keyStart: number;
  /** First and one-past-last byte of the value. */
  valueStart: number;
  valueEnd: number;
}

/** A JSON object that arrived as bytes: the bytes, its value and where its top-level members stand. */
export interface JsonDocument {
  readonly bytes: Buffer;
  readonly value: Record<string, unknown>;
  readonly members: readonly Member[];
}

/** One change of a top-level member: `json` is the new value's JSON text, undefined removes the member. */
export interface Edit {
  key: string;
  json: string | undefined;
}
