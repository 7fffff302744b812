import type { PermissionAnswer } from './session.ts';
import type { Tool } from './tools/tool.ts';

/** What the person decided for the rest of the session, by tool. */
export class Permissions {
  readonly #decided = new Map<string, boolean>();

  /** @param ask is called unless the person has decided for good; null refuses this call */
  async isAllowed({ name }: Tool, ask: () => Promise<PermissionAnswer | null>): Promise<boolean> {
    const decided = this.#decided.get(name);
    if (decided !== undefined) return decided;
    const answer = await ask();
    const isAllowed = answer === 'allow_once' || answer === 'allow_always';
    if (answer === 'allow_always' || answer === 'reject_always') this.#decided.set(name, isAllowed);
    return isAllowed;
  }
}
