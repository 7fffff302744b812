/** One transcript, and who has them. No I/O. */
import { type Caller, keyNumber } from '../access/index.ts';
import type { IoLoggingSettings } from '../base/config.ts';

export interface Transcript {
  /** Of the generation. */
  id: string;
  /** Wall time in ms. */
  createdAt: number;
  keyId: string;
  workspaceId: string;
  organizationId: string;
  /** JSON of GenerationContentData's members. */
  input: string;
  output: string;
  error: string | null;
}

/** How much of one request's input, and of its output, is kept. */
export interface ContentRule {
  maxBytes: number;
}

/**
 * Whether the contents of one request are kept. What its workspace prescribes comes first; the installation's setting
 * stands for workspaces that prescribe nothing.
 *
 * @param draw a number from 0 up to 1
 */
export function ruleOf(caller: Caller, settings: IoLoggingSettings, draw: () => number): ContentRule | undefined {
  const { ioLogging } = caller.workspace;
  if (ioLogging === null && !settings.enabled) return undefined;
  const numbers = ioLogging?.keyNumbers ?? null;
  if (numbers !== null && !numbers.has(keyNumber(caller.keyHash))) return undefined;
  const rate = ioLogging?.samplingRate ?? settings.sampleRate;
  return rate >= 1 || draw() < rate ? { maxBytes: settings.maxBytes } : undefined;
}
