/** Interns whose agent does what its prompts say (`obedient-agent.ts`), in sandboxes of this machine. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { type AgentProfile, agentProfiles } from '../../src/interns/index.ts';

const PROGRAM = path.join(import.meta.dirname, '..', '..', 'src', 'testing', 'interns', 'obedient-agent.ts');
const FILE = 'agent.mjs';

export interface Obedient {
  /** Members of the yaml; a gateway that runs from its sources needs `agent`, too. */
  yaml: { interns: object; sandboxes: { folder: string } };
  agent: AgentProfile;
  /** What the sandbox of an intern has, from outside. */
  home(internId: string): string;
  workspace(internId: string): string;
  /** Process ids of its agent; empty while it does not run. */
  agents(internId: string): number[];
}

export function obedient(t: Pick<TestContext, 'after'>): Obedient {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-obedient-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // Sandboxes have users of their own.
  chmodSync(folder, 0o755);
  // They may have an older Node.js, too.
  writeFileSync(path.join(folder, FILE), stripTypeScriptTypes(readFileSync(PROGRAM, 'utf8')), { mode: 0o755 });
  const sandboxes = path.join(folder, 'sandboxes');
  const name = path.basename(folder).toLowerCase().replace('gatehouse-', '').slice(0, 32);
  const inside = (part: string) => (internId: string) => path.join(sandboxes, `i${internId.replaceAll('-', '')}`, part);
  const installation = { name, folder, command: [FILE] };
  return {
    yaml: { interns: { agent: name, agents: [installation] }, sandboxes: { folder: sandboxes } },
    agent: agentProfiles(systemClock, [{ ...installation, program: null }], folder).get(name)!,
    home: inside('home'),
    workspace: inside('workspace'),
    agents: (internId) =>
      processesOf(`agent-${name}/${FILE}`).filter((pid) => {
        const opened = readText(`/proc/${pid}/mountinfo`);
        return opened.includes(`i${internId.replaceAll('-', '')}`);
      }),
  };
}

/** Processes with this text in their command lines. */
export function processesOf(text: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && readText(`/proc/${pid}/cmdline`).includes(text))
    .map(Number);
}

/** Empty for a process that is gone. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
