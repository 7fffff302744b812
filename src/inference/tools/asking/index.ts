/** Tools that ask other models, each by requests of its own (`inference/nested.ts`). */
export { advisor } from './advisor.ts';
export { fusion } from './fusion/index.ts';
export { requireKnown } from './settings.ts';
export { subagent } from './subagent.ts';
