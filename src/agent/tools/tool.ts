/** What a tool of the agent is, and what it may use. */
import type { ToolKind } from '@agentclientprotocol/sdk/unstable';
import type { Clock } from '../../base/clock.ts';

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object with required and optional members of plain types. */
  readonly parameters: Parameters;
  readonly kind: ToolKind;
  /** Whether a person is asked before it runs, where the session asks at all. */
  readonly needsConsent: boolean;
  /** One line for people, such as the command. */
  title(args: Arguments): string;
  /** What the model gets. Rejects with ToolError, or with the reason of the signal. */
  run(args: Arguments, context: ToolContext): Promise<string>;
}

interface Parameters {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, { readonly type: string; readonly [keyword: string]: unknown }>>;
  readonly required: readonly string[];
}

/** Checked against the tool's parameters. */
export type Arguments = Readonly<Record<string, unknown>>;

export interface ToolContext {
  /** The workspace: relative paths start here. */
  readonly folder: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Asks the person that the agent works for. Resolves with null if they do not want to answer. */
  ask(question: string, choices: readonly string[] | null): Promise<string | null>;
}

/** The message goes to the model as the tool's result. */
export class ToolError extends Error {}

/** Characters of a result. */
const LONGEST_RESULT = 32_000;

/** The beginning and the end of a text that is too long for a result. */
export function cut(text: string, limit: number = LONGEST_RESULT): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  return `${text.slice(0, half)}\n[... ${text.length - 2 * half} characters left out ...]\n${text.slice(-half)}`;
}

/** Parses and checks what the model passed. Throws ToolError. */
export function argumentsOf({ name, parameters }: Tool, text: string): Arguments {
  let args: unknown;
  try {
    args = JSON.parse(text === '' ? '{}' : text);
  } catch (error) {
    throw new ToolError(`the arguments of ${name} are not JSON: ${(error as Error).message}`);
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    throw new ToolError(`the arguments of ${name} must be an object`);
  }
  for (const missing of parameters.required) {
    if (!Object.hasOwn(args, missing)) throw new ToolError(`${name} needs ${missing}`);
  }
  for (const [member, value] of Object.entries(args)) {
    const type = parameters.properties[member]?.type;
    if (type === undefined) throw new ToolError(`${name} has no parameter ${member}`);
    if (!isOfType(value, type)) throw new ToolError(`${member} of ${name} must be of type ${type}`);
  }
  return args as Arguments;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'array') return Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}
