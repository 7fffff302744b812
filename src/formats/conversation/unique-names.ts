import type { Tool } from './conversation.ts';
import { Uncarried } from './losses.ts';

/** For formats whose services refuse two functions of one name. @throws Uncarried */
export function checkUniqueNames(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const tool of tools) {
    if (tool.type !== 'function') continue;
    if (names.has(tool.name)) throw new Uncarried('tools', `two functions have the name ${tool.name}`);
    names.add(tool.name);
  }
}
