/** Models of servers on this machine, as `discovery` reads them from the servers' own lists. */

export interface LocalModel {
  name: string;
  contextLength?: number;
  images?: boolean;
  /** Whether it runs elsewhere. */
  remote?: boolean;
}

/** How a kind of server is recognized on this machine. */
export interface LocalDiscovery {
  /** Path of its own model list, which distinguishes this software from others. */
  path: string;
  /** The models in a reply; undefined if the reply is not from this software. */
  models(answer: unknown): LocalModel[] | undefined;
}

export type Json = Record<string, unknown>;

export function entriesOf(answer: unknown, key: string): Json[] | undefined {
  const list = typeof answer === 'object' && answer !== null ? (answer as Json)[key] : undefined;
  if (!Array.isArray(list)) return undefined;
  return list.filter((entry): entry is Json => typeof entry === 'object' && entry !== null);
}

/** The model list of the chat format, if the server names itself in it. An empty list identifies no server. */
export function ownedBy(answer: unknown, owner: string): Json[] | undefined {
  const models = entriesOf(answer, 'data');
  return models?.some(({ owned_by }) => owned_by === owner) ? models : undefined;
}

export function modelNamed(name: unknown, facts: Omit<LocalModel, 'name'>): LocalModel[] {
  return typeof name === 'string' && name !== '' ? [{ name, ...facts }] : [];
}

export function lengthOf(value: unknown): { contextLength?: number } {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? { contextLength: value } : {};
}
