/**
 * Agents that the operator installs: how each known program is started, and how it differs from others. They get no
 * key: the egress proxy adds it.
 */
import type { Clock } from '../../../base/clock.ts';
import type { AgentInstallation } from '../../../base/config.ts';
import { type AcpOptions, connectOverAcp } from '../acp.ts';
import {
  type AgentCommand,
  type AgentProfile,
  AgentRefused,
  type AgentSettings,
  type AgentSurroundings,
} from '../connection.ts';
import { codexConfiguration, openCodeConfiguration } from './configuration-files.ts';

interface KnownProgram {
  readonly modes: AcpOptions['modes'];
  readonly steering: AcpOptions['steering'];
  /** @param folder of the program in the sandbox */
  start(settings: AgentSettings, surroundings: AgentSurroundings, folder: string): Omit<AgentCommand, 'programs'>;
}

const opencode: KnownProgram = {
  // It has no modes: it asks by its configuration, and self-drive means that the gateway consents.
  modes: {},
  steering: 'prompt',
  start({ model, instructions }, { home, gateway }, folder) {
    const config = `${home}/.config/opencode/opencode.json`;
    const named = needed(model, 'OpenCode');
    return {
      argv: [`${folder}/node_modules/opencode-${PLATFORM}/bin/opencode`, 'acp'],
      environment: {
        OPENCODE_CONFIG: config,
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      },
      files: {
        [config]: openCodeConfiguration(named, gateway, instructions),
        ...(instructions === null ? {} : { [`${home}/.config/opencode/AGENTS.md`]: instructions }),
      },
    };
  },
};

const claude: KnownProgram = {
  // Its default mode runs tools without asking.
  modes: { manual: 'default', 'self-drive': 'bypassPermissions' },
  steering: 'request',
  start({ model, instructions }, { node, home, gateway }, folder) {
    const named = needed(model, 'Claude Code');
    return {
      argv: [node, `${folder}/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js`],
      environment: {
        // The program appends /v1 itself.
        ANTHROPIC_BASE_URL: gateway.replace(/\/v1$/, ''),
        ANTHROPIC_AUTH_TOKEN: 'none',
        ANTHROPIC_MODEL: named,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: named,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
      },
      files: instructions === null ? {} : { [`${home}/.claude/CLAUDE.md`]: instructions },
    };
  },
};

const qwen: KnownProgram = {
  // Its default mode lets a model decide.
  modes: { manual: 'default', 'self-drive': 'yolo' },
  steering: 'request',
  start({ model, instructions }, { node, home, gateway }, folder) {
    return {
      argv: [node, `${folder}/node_modules/@qwen-code/qwen-code/cli-entry.js`, '--acp', '--auth-type', 'openai'],
      environment: { OPENAI_BASE_URL: gateway, OPENAI_API_KEY: 'none', OPENAI_MODEL: needed(model, 'Qwen Code') },
      files: instructions === null ? {} : { [`${home}/.qwen/QWEN.md`]: instructions },
    };
  },
};

const codex: KnownProgram = {
  modes: { manual: 'read-only', 'self-drive': 'agent-full-access' },
  steering: 'request',
  start(settings, { node, home, gateway }, folder) {
    const configuration = `${home}/.codex`;
    return {
      argv: [node, `${folder}/node_modules/@agentclientprotocol/codex-acp/dist/index.js`],
      environment: { CODEX_HOME: configuration, GATEWAY_KEY: 'none', NO_BROWSER: '1' },
      files: {
        [`${configuration}/config.toml`]: codexConfiguration(settings, gateway),
        ...(settings.instructions === null ? {} : { [`${configuration}/AGENTS.md`]: settings.instructions }),
      },
    };
  },
};

const KNOWN: Readonly<Record<NonNullable<AgentInstallation['program']>, KnownProgram>> = {
  opencode,
  claude,
  qwen,
  codex,
};
const PLATFORM = `${process.platform}-${process.arch}`;

export function installedProfile(installation: AgentInstallation, clock: Clock): AgentProfile {
  const { name, program, folder } = installation;
  const mounted = `agent-${name}`;
  const known = program === null ? otherProgram(installation) : KNOWN[program];
  return {
    name,
    command(settings, surroundings) {
      const started = known.start(settings, surroundings, `/opt/${mounted}`);
      return {
        ...started,
        programs: [{ name: mounted, path: folder }],
      };
    },
    connect(stdio, { workspace }) {
      return connectOverAcp(stdio, { workspace, modes: known.modes, steering: known.steering, clock });
    },
  };
}

function otherProgram({ command: [program = '', ...args] }: AgentInstallation): KnownProgram {
  return {
    modes: {},
    steering: 'request',
    start: ({ model, instructions }, { gateway, home }, folder) => ({
      argv: [`${folder}/${program}`, ...args],
      environment: {
        OPENAI_BASE_URL: gateway,
        OPENAI_API_KEY: 'none',
        ...(model === null ? {} : { OPENAI_MODEL: model }),
      },
      files: instructions === null ? {} : { [`${home}/AGENTS.md`]: instructions },
    }),
  };
}

function needed(model: string | null, program: string): string {
  if (model !== null) return model;
  throw new AgentRefused(`${program} needs a model: set that of the intern, or the default model of its workspace`);
}
