/** The snippets of docs/guides/coding-agents.md whose programs are small enough for every run. */
import { testSnippets } from './guide-scene.ts';

await testSnippets(['Claude Code', 'Continue', 'qwen-code']);
