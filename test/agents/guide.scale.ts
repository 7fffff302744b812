/** Every snippet of docs/guides/coding-agents.md, with the real program. */
import { PROGRAMS, testSnippets } from './guide-scene.ts';

await testSnippets(Object.keys(PROGRAMS));
