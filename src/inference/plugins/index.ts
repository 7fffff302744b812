/**
 * Plugins: changes to a request or to its answer that the request's member `plugins` names
 * ([guide](../../../docs/guides/plugins.md)). One file or folder each, listed in `registry.ts`; `plugin.ts` is the
 * contract. Not here: tools that the model calls (`tools/`), and guardrails, which apply whether the request names them
 * or not.
 */

export { withPluginSettings } from './described.ts';
export { wantsFusion, withFusion } from './fusion.ts';
export { ONLINE, withSearch } from './online.ts';
export { requestedPlugins } from './requested.ts';
export { isRouterModel, ROUTERS, routerModels } from './routers/index.ts';
export { beforeFilters, judgeOf, revisionOf, runPlugins } from './run.ts';
