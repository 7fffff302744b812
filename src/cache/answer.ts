/** One cached answer. */
export interface CachedAnswer {
  /** SHA-256. */
  key: Buffer;
  /** The generation that the answer is from. */
  sourceId: string;
  /** Wall times in ms. */
  createdAt: number;
  expiresAt: number;
  /** From that generation's row: who served it and how it ended. */
  model: string;
  endpointId: string | null;
  providerName: string | null;
  finishReason: string | null;
  nativeFinishReason: string | null;
  /** A JSON body, or the text of an event stream. */
  body: Buffer;
}
