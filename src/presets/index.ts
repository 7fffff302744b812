/**
 * Presets: named settings of requests, with a history of versions. A request names one as `@preset/<slug>`, and its settings
 * become members of the request before anything else reads it, so that limits, guardrails and budgets judge the whole.
 *
 *     operations    the control plane: requests of the three formats make versions
 *     config        what a preset keeps of a request
 *     members       the settings of each format, and their translation
 *     terms         the presets in memory, as part of the rules of their workspace
 *     use           merges a request with its preset
 */
export { presetMigrations } from './migrations/index.ts';
export { type PresetParts, presetOperations } from './operations.ts';
export { endPresets } from './store.ts';
export { presetsReader } from './terms.ts';
export { applyPreset, namesPreset } from './use.ts';
