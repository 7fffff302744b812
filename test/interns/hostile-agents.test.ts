/** Hostile agents, as far as they are cheap; `hostile-agents.scale.ts` has all. */
import { playHostile } from './hostile-agents.ts';

await playHostile(false);
