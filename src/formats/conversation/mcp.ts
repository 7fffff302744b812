/** Tools of MCP servers, in the words that formats share. */
import { createHash } from 'node:crypto';
import type { Message, OpaquePart } from './conversation.ts';
import type { Fields } from './fields.ts';
import type { CallResult, ToolStart } from './tool-steps.ts';

/** A tool of a server, by the label that the request gives the server. */
export interface McpToolName {
  label: string;
  name: string;
}

export interface McpList {
  label: string;
  tools: readonly { name: string; description: string | null; schema: Fields; annotations: unknown }[];
  /** Why there are no tools. */
  error: string | null;
}

/** A call that the client allowed or denied. */
export interface McpAnswer extends McpToolName {
  /** Of the request for approval. */
  approvalId: string;
  approved: boolean;
  /** Id of the call, as the model or the upstream made it. */
  callId: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
}

/** How a format shows what only MCP servers need. */
export interface McpTrace {
  /** The tools of a server, before the first turn. */
  listed(list: McpList): OpaquePart;
  /** Asks the client to allow a call. */
  asked(step: ToolStart): OpaquePart;
  /** Labels of servers whose tools the history has listed. */
  listedIn(request: Fields): ReadonlySet<string>;
  /** Approvals of the client whose calls are not in the history yet. */
  answersIn(request: Fields): McpAnswer[];
  /**
   * The messages with the requests for approval as calls with results.
   * @param results of the calls that were carried out for this request, by the ids of the requests for approval
   */
  settled(messages: readonly Message[], results: ReadonlyMap<string, CallResult>): Message[];
}

const LONGEST = 56;
const HASH_LENGTH = 8;

/** The function that the model gets for a tool: 56 letters, digits, `_` and `-` at most. */
export function mcpFunctionName({ label, name }: McpToolName): string {
  const plain = `${label}_${name}`;
  const clean = plain.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  if (clean === plain && clean.length <= LONGEST) return clean;
  const hash = createHash('sha256').update(plain).digest('hex').slice(0, HASH_LENGTH);
  return `${clean.slice(0, LONGEST - HASH_LENGTH - 1)}_${hash}`;
}
