/** The objects of a fake cluster, with versions, and their watchers. */
import { randomUUID } from 'node:crypto';
import type { AnyObject } from './schema.ts';

export type Change = 'ADDED' | 'MODIFIED' | 'DELETED';
type Watcher = (type: Change, object: AnyObject) => void;

export class Store {
  readonly #objects = new Map<string, AnyObject>();
  readonly #watchers = new Map<Watcher, string>();
  readonly #history: { version: number; plural: string; type: Change; object: AnyObject }[] = [];
  #version = 1000;

  get version(): string {
    return String(this.#version);
  }

  get(plural: string, name: string): AnyObject | undefined {
    return this.#objects.get(`${plural}/${name}`);
  }

  list(plural: string): AnyObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${plural}/`)).map(([, object]) => object);
  }

  /** Adds or replaces, and gives it a version. */
  put(plural: string, object: AnyObject): AnyObject {
    const key = `${plural}/${object.metadata.name}`;
    const known = this.#objects.get(key);
    this.#version += 1;
    const metadata = {
      ...object.metadata,
      uid: known?.metadata.uid ?? randomUUID(),
      creationTimestamp: known?.metadata.creationTimestamp ?? new Date().toISOString(),
      resourceVersion: this.version,
    };
    const stored = structuredClone({ ...object, metadata });
    this.#objects.set(key, stored);
    this.#tell(plural, known === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  remove(plural: string, name: string): void {
    const key = `${plural}/${name}`;
    const known = this.#objects.get(key);
    if (known === undefined) return;
    this.#objects.delete(key);
    this.#version += 1;
    this.#tell(plural, 'DELETED', { ...known, metadata: { ...known.metadata, resourceVersion: this.version } });
  }

  /** @param from reports what has changed since this version @returns a function that ends it */
  watch(plural: string, from: number, watcher: Watcher): () => void {
    for (const each of this.#history) {
      if (each.plural === plural && each.version > from) watcher(each.type, each.object);
    }
    this.#watchers.set(watcher, plural);
    return () => void this.#watchers.delete(watcher);
  }

  #tell(plural: string, type: Change, object: AnyObject): void {
    this.#history.push({ version: this.#version, plural, type, object });
    for (const [watcher, of] of this.#watchers) if (of === plural) watcher(type, object);
  }
}

/** Whether labels fulfill a selector such as `a=b,c=d`. */
export function matches(labels: Record<string, string> | undefined, selector: string | null): boolean {
  if (selector === null || selector === '') return true;
  return selector.split(',').every((term) => {
    const [name = '', value] = term.split('=');
    return labels?.[name] === value;
  });
}
