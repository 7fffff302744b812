/** Every plugin, in the order in which they run. */
import { alignment } from './alignment/index.ts';
import { contextCompression } from './context-compression/index.ts';
import { fileParser } from './file-parser/index.ts';
import { fusion } from './fusion.ts';
import { moderation } from './moderation/index.ts';
import type { Plugin } from './plugin.ts';
import { responseHealing } from './response-healing/index.ts';
import { routerPlugins } from './routers/index.ts';
import { web } from './web/index.ts';
import { webFetch } from './web-fetch/index.ts';

export const PLUGINS: readonly Plugin[] = [
  ...routerPlugins,
  fusion,
  alignment,
  fileParser,
  moderation,
  web,
  webFetch,
  contextCompression,
  responseHealing,
];
