/** The thread that counts tokens. Loads a tokenizer when a text is first counted by it. */
import { parentPort } from 'node:worker_threads';
import type { Encoding } from './family.ts';
import { countInPieces } from './pieces.ts';

export interface CountOrder {
  id: number;
  encoding: Encoding;
  text: string;
}

/** `tokens` absent: it could not be counted. */
export interface CountNews {
  id: number;
  tokens?: number;
}

type Count = (text: string, options: { disallowedSpecial: Set<string> }) => number;

/** A text that spells a special token is a text all the same. */
const PLAIN = { disallowedSpecial: new Set<string>() };
const tokenizers = new Map<Encoding, Promise<{ countTokens: Count }>>();

function tokenizer(encoding: Encoding): Promise<{ countTokens: Count }> {
  let loading = tokenizers.get(encoding);
  if (loading === undefined) {
    loading =
      encoding === 'o200k_base'
        ? import('gpt-tokenizer/encoding/o200k_base')
        : import('gpt-tokenizer/encoding/cl100k_base');
    tokenizers.set(encoding, loading);
  }
  return loading;
}

parentPort?.on('message', async ({ id, encoding, text }: CountOrder) => {
  const news: CountNews = { id };
  try {
    const { countTokens } = await tokenizer(encoding);
    news.tokens = countInPieces(text, (piece) => countTokens(piece, PLAIN));
  } catch {
    // Whoever asked goes on with the bound that it has.
  }
  parentPort?.postMessage(news);
});
