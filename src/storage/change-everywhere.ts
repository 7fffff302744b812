import type { Changes, Database, Queryable } from './database.ts';

/** `Changes.announce` of the transaction that is under way. */
export type Announce = (topic: string, ...ids: readonly string[]) => Promise<void>;

/**
 * Runs `work` in a transaction (`Database.transaction`) and resolves with what it yields once every process has handled what
 * it announced, or no longer relies on its memory (`Changes.announce`); at once where it announced nothing. A reply that is
 * sent afterwards is true in every process that reaches the database.
 */
export async function changeEverywhere<T>(
  { database, changes }: { database: Pick<Database, 'transaction'>; changes: Pick<Changes, 'announce'> },
  work: (tx: Queryable, announce: Announce) => Promise<T>,
): Promise<T> {
  const { result, announced } = await database.transaction(async (tx) => {
    const announced: { settled(): Promise<void> }[] = [];
    const result = await work(tx, async (topic, ...ids) => {
      if (ids.length > 0) announced.push(await changes.announce(tx, topic, ...ids));
    });
    return { result, announced };
  });
  // They leave together with the commit, in order, so a process that has handled the last has handled all.
  await announced.at(-1)?.settled();
  return result;
}
