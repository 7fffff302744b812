/**
 * Plugins: what the gateway does to a request or its answer when the member `plugins` asks for it. One row each, also
 * for those that are not built yet. The change that makes one work sets `built` here
 * ([guide](../../../docs/guides/add-a-pipeline-step.md)).
 */
interface Plugin {
  readonly id: string;
  readonly built: boolean;
}

export const PLUGINS: readonly Plugin[] = [
  { id: 'alignment', built: false },
  { id: 'auto-beta-router', built: false },
  { id: 'auto-router', built: false },
  { id: 'context-compression', built: false },
  { id: 'file-parser', built: false },
  { id: 'fusion', built: false },
  { id: 'jev-router', built: false },
  { id: 'moderation', built: false },
  { id: 'pareto-router', built: false },
  { id: 'response-healing', built: false },
  { id: 'switchyard-router', built: false },
  { id: 'web', built: false },
  { id: 'web-fetch', built: false },
];
