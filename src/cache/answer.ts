/** One answer as it is kept. */
export interface CachedAnswer {
  /** SHA-256. */
  key: Buffer;
  /** The generation whose answer it is. */
  sourceId: string;
  /** Wall times in ms. */
  createdAt: number;
  expiresAt: number;
  /** What that generation's row says of who answered and how it ended. */
  model: string;
  endpointId: string | null;
  providerName: string | null;
  finishReason: string | null;
  nativeFinishReason: string | null;
  /** A JSON body, or the text of an event stream. */
  body: Buffer;
}
