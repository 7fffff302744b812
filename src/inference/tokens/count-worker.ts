/** The worker thread that counts tokens. Loads a tokenizer on first use. */
import { parentPort } from 'node:worker_threads';
import type { Encoding } from './family.ts';
import { countInPieces } from './pieces.ts';

export interface CountOrder {
  id: number;
  encoding: Encoding;
  text: string;
}

/** `tokens` is absent when counting failed. */
export interface CountNews {
  id: number;
  tokens?: number;
}

/** Sent once a tokenizer is loaded, before its first count. */
export interface LoadedNews {
  loaded: Encoding;
}

type Count = (text: string, options: { disallowedSpecial: Set<string> }) => number;

/** A prompt that spells a special token contains plain text, not that token. */
const PLAIN = { disallowedSpecial: new Set<string>() };
const tokenizers = new Map<Encoding, Promise<{ countTokens: Count }>>();

function tokenizer(encoding: Encoding): Promise<{ countTokens: Count }> {
  let loading = tokenizers.get(encoding);
  if (loading === undefined) {
    loading = load(encoding);
    tokenizers.set(encoding, loading);
  }
  return loading;
}

async function load(encoding: Encoding): Promise<{ countTokens: Count }> {
  const loaded =
    encoding === 'o200k_base'
      ? await import('gpt-tokenizer/encoding/o200k_base')
      : await import('gpt-tokenizer/encoding/cl100k_base');
  parentPort?.postMessage({ loaded: encoding } satisfies LoadedNews);
  return loaded;
}

parentPort?.on('message', async ({ id, encoding, text }: CountOrder) => {
  const news: CountNews = { id };
  try {
    const { countTokens } = await tokenizer(encoding);
    news.tokens = countInPieces(text, (piece) => countTokens(piece, PLAIN));
  } catch {
    // The caller falls back to its byte bound.
  }
  parentPort?.postMessage(news);
});
