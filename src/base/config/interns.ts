/** The section `interns` of the yaml (docs/guides/interns.md). */
import type { Field } from './field.ts';
import { list, mapping, oneOf, text, textLike } from './readers.ts';

/** Agents whose settings the gateway knows how to write. */
const AGENT_PROGRAMS = ['opencode', 'claude', 'qwen', 'codex'] as const;

/** Ships with the gateway. */
export const DEFAULT_AGENT = 'gatehouse';

/** An agent that the operator has installed next to the gateway. */
export interface AgentInstallation {
  name: string;
  /** null: any other program that speaks the Agent Client Protocol. */
  program: (typeof AGENT_PROGRAMS)[number] | null;
  /** Absolute; the sandbox sees it read-only. */
  folder: string;
  /** Of a program that is not known: relative to the folder, and arguments. */
  command: readonly string[];
}

export interface InternSettings {
  /** The agent of every intern: `gatehouse`, or the name of an installation. */
  agent: string;
  installed: readonly AgentInstallation[];
}

export const DEFAULT_INTERNS: InternSettings = Object.freeze({ agent: DEFAULT_AGENT, installed: Object.freeze([]) });

const agentName = textLike(/^[a-z][a-z0-9-]{0,31}$/, 'up to 32 lower-case letters, digits and dashes, a letter first');
const folder = textLike(/^\/[^\0]*[^/\0]$/, 'an absolute path without a slash at the end');

export function interns(field: Field): InternSettings | undefined {
  const read = mapping(field, { agent: agentName, agents: list(installation) });
  if (!read) return undefined;
  const installed = (read.agents ?? []).filter((each) => each !== undefined);
  const names = installed.map(({ name }) => name);
  const twice = names.find((name, index) => name === DEFAULT_AGENT || names.indexOf(name) < index);
  if (twice !== undefined) return field.fail(`has two agents with the name ${twice}`);
  const agent = read.agent ?? DEFAULT_AGENT;
  if (agent !== DEFAULT_AGENT && !names.includes(agent)) {
    return field.fail(`has no agent ${agent}: ${[DEFAULT_AGENT, ...names].join(', ')} can be chosen`);
  }
  return { agent, installed };
}

function installation(field: Field): AgentInstallation | undefined {
  const read = mapping(field, { name: agentName, program: oneOf(AGENT_PROGRAMS), folder, command: list(text) }, [
    'name',
    'folder',
  ]);
  if (read?.name === undefined || read.folder === undefined) return undefined;
  const command = (read.command ?? []).filter((each) => each !== undefined);
  if ((read.program === undefined) === (command.length === 0)) {
    return field.fail('must have a program that the gateway knows, or a command');
  }
  return { name: read.name, program: read.program ?? null, folder: read.folder, command };
}
