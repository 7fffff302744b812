/** The layers of the tests. The folder of a file decides which it is in. */

export const LAYERS = ['unit', 'rules', 'api', 'wire', 'process'] as const;
export type Layer = (typeof LAYERS)[number];

/** Next to the sources: no database, no sockets. */
const UNIT = /^src\//;
/** About the sources, the documents and `openapi.json`; they read files only. */
const RULES = /^test\/rules\//;
/** Recorded traffic, client libraries and coding agents. */
const WIRE = /^test\/(?:recordings|sdk|agents)\//;
/** The gateway as processes and as a package: each file has its test process to itself. */
const PROCESS = /^test\/process\//;

/** @param file below the root, with `/` */
export function layerOf(file: string): Layer {
  if (UNIT.test(file)) return 'unit';
  if (RULES.test(file)) return 'rules';
  if (WIRE.test(file)) return 'wire';
  return PROCESS.test(file) ? 'process' : 'api';
}
