/**
 * Features that the gateway itself adds to every format: server tools and plugins. Which exist, under which names, which
 * are built, and the refusal of those that are not. Not here: what they do.
 */
export { type FeatureRules, featureMembers, refuseUnbuilt, unbuilt } from './refusals.ts';
export { DISABLEABLE } from './server-tool.ts';
export { useOf } from './uses.ts';
