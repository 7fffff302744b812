/**
 * Features that the gateway adds to every format: the members that request them, the names of server tools, and the
 * refusal of tools that are not built. Not here: the work of the tools (`inference/tools`), and the plugins
 * (`inference/plugins`).
 */
export {
  type FeatureRules,
  featureMembers,
  onlyServerTools,
  refuseUnbuilt,
  serverToolName,
  unbuilt,
} from './refusals.ts';
export { DISABLEABLE } from './server-tool.ts';
export { type StopCondition, stopConditions } from './stop-conditions.ts';
export { sumOfWork, vendorWork, workOf } from './upstream-work.ts';
export { useOf } from './uses.ts';
