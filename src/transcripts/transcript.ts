/** One transcript, and the rule for which requests have one. No I/O. */
import { type Caller, keyNumber } from '../access/index.ts';
import type { IoLoggingSettings } from '../base/config.ts';

export interface Transcript {
  /** The id of the generation. */
  id: string;
  /** Wall time in ms. */
  createdAt: number;
  keyId: string;
  workspaceId: string;
  organizationId: string;
  /** JSON of the members of `data` in `GET /generation/content`. */
  input: string;
  output: string;
  error: string | null;
}

/** The size limit for one request's input, and for its output. */
export interface ContentRule {
  maxBytes: number;
}

/**
 * Whether one request's content is logged. The workspace's setting takes precedence over the installation's.
 *
 * @param draw returns a number from 0 (inclusive) to 1 (exclusive)
 */
export function ruleOf(caller: Caller, settings: IoLoggingSettings, draw: () => number): ContentRule | undefined {
  const { ioLogging } = caller.workspace;
  if (ioLogging === null && !settings.enabled) return undefined;
  const numbers = ioLogging?.keyNumbers ?? null;
  if (numbers !== null && !numbers.has(keyNumber(caller.keyHash))) return undefined;
  const rate = ioLogging?.samplingRate ?? settings.sampleRate;
  return rate >= 1 || draw() < rate ? { maxBytes: settings.maxBytes } : undefined;
}
