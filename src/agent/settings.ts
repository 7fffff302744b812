/** The agent's settings: a JSON file that the gateway writes before it starts the agent. */
import { readFileSync } from 'node:fs';

export interface AgentSettings {
  /** Base URL of the gateway's inference operations, such as `http://127.0.0.1:3128/api/v1`. */
  readonly gateway: string;
  /** `author/slug`. Null: the gateway chooses. */
  readonly model: string | null;
  /** Standing instructions of the intern. */
  readonly instructions: string | null;
  /** Tokens that a conversation may have before older parts of it are dropped. */
  readonly contextTokens: number;
}

/** Throws if the file is not what the gateway writes. */
export function readSettings(file: string): AgentSettings {
  const read = JSON.parse(readFileSync(file, 'utf8')) as Partial<AgentSettings>;
  if (typeof read.gateway !== 'string') throw new Error(`${file} has no gateway`);
  return {
    gateway: read.gateway.replace(/\/+$/, ''),
    model: read.model ?? null,
    instructions: read.instructions ?? null,
    contextTokens: read.contextTokens ?? DEFAULT_CONTEXT_TOKENS,
  };
}

const DEFAULT_CONTEXT_TOKENS = 120_000;
