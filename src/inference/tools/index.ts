/**
 * Server tools: tools that a request declares and the gateway runs (docs/guides/server-tools.md). A tool is one file with
 * the contract in `tool.ts` and a line in `registry.ts`; `server-tools.ts` puts them on the turn loop. Not here: the loop
 * itself (`turns/`), and how formats show calls (`formats/<format>/tool-trace.ts`).
 */

export { RequestContainers } from './container/index.ts';
export { checkServerTools } from './declared.ts';
export { serverTools } from './server-tools.ts';
export { withOwnCode } from './vendor-code.ts';
