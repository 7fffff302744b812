/** Which credential of a provider a call carries: one after the other, resting ones only when all rest. */
import type { Provider } from '../providers/index.ts';
import type { Health } from './health.ts';

export interface Credential {
  /** Names the credential in `Health` and in logs; says nothing about its value. */
  id: string;
  value: string | null;
}

export class Credentials {
  readonly #health: Health;
  readonly #turns = new Map<string, number>();

  constructor(health: Health) {
    this.#health = health;
  }

  choose(provider: Provider): Credential {
    const { credentials } = provider;
    if (credentials.length < 2) return { id: idOf(provider, 0), value: credentials[0] ?? null };
    const turn = this.#turns.get(provider.id) ?? 0;
    this.#turns.set(provider.id, (turn + 1) % credentials.length);
    for (let step = 0; step < credentials.length; step++) {
      const index = (turn + step) % credentials.length;
      const id = idOf(provider, index);
      if (!this.#health.resting(id)) return { id, value: credentials[index] as string };
    }
    return { id: idOf(provider, turn), value: credentials[turn] as string };
  }

  /** Whether some credential of the provider does not rest. */
  anyRested(provider: Provider): boolean {
    return provider.credentials.some((_, index) => !this.#health.resting(idOf(provider, index)));
  }
}

function idOf(provider: Provider, index: number): string {
  return `${provider.id}#${index}`;
}
