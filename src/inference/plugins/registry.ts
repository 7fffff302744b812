/** Every plugin, in the order in which they act. */
import { contextCompression } from './context-compression/index.ts';
import type { Plugin } from './plugin.ts';
import { responseHealing } from './response-healing/index.ts';

export const PLUGINS: readonly Plugin[] = [contextCompression, responseHealing];

/** Ids of plugins that are not built. */
export const UNBUILT: ReadonlySet<string> = new Set([
  'alignment',
  'auto-beta-router',
  'auto-router',
  'file-parser',
  'fusion',
  'jev-router',
  'moderation',
  'pareto-router',
  'switchyard-router',
  'web',
  'web-fetch',
]);
