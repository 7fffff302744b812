/** Hostile agents, with those that flood, hang, fork and fill the disk. */
import { playHostile } from './hostile-agents.ts';

await playHostile(true);
