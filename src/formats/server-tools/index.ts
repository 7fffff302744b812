/**
 * Features that the gateway itself adds to every format: the members that ask for them, the names of server tools, and
 * the refusal of those that are not built. Not here: what they do, and the plugins (`inference/plugins`).
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
