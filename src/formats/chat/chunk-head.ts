/** The gateway's members at the head of every chunk: id, object, created, model, provider. */
import { type Member, scanMembers } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import { type Fields, isTime, nonEmptyText } from '../conversation/fields.ts';
import type { Stamp } from '../conversation/format.ts';

const OBJECT = 'chat.completion.chunk';

/** A known chunk beginning, up to the key `choices`, and its replacement. */
interface Beginning {
  text: string;
  replacement: string;
  id: unknown;
  object: unknown;
  created: unknown;
  model: unknown;
  provider: unknown;
  fingerprint: unknown;
}

export class ChunkHead {
  readonly #stamp: Stamp;
  readonly #edits: readonly Edit[];
  readonly #editsOfNull: readonly Edit[];
  #created: number | undefined;
  #fingerprint: string | undefined;
  #tier: string | undefined;
  #beginning: Beginning | undefined;

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
    this.#edits = [
      { key: 'id', json: JSON.stringify(stamp.id) },
      { key: 'object', json: JSON.stringify(OBJECT) },
      { key: 'model', json: JSON.stringify(stamp.model) },
      { key: 'provider', json: JSON.stringify(stamp.provider) },
    ];
    // Clients accept a fingerprint or none, but not null.
    this.#editsOfNull = [...this.#edits, { key: 'system_fingerprint', json: undefined }];
  }

  /** The head members for a rebuilt chunk. */
  members(chunk: Fields = {}): Fields {
    this.observe(chunk);
    return {
      id: this.#stamp.id,
      object: OBJECT,
      created: this.#created ?? this.#stamp.created,
      model: this.#stamp.model,
      provider: this.#stamp.provider,
      ...(this.#fingerprint !== undefined && { system_fingerprint: this.#fingerprint }),
      ...(this.#tier !== undefined && { service_tier: this.#tier }),
    };
  }

  observe(chunk: Fields): void {
    const { created } = chunk;
    if (this.#created === undefined && isTime(created)) this.#created = created;
    this.#fingerprint ??= nonEmptyText(chunk['system_fingerprint']);
    this.#tier ??= nonEmptyText(chunk['service_tier']);
  }

  /** The text with our head. Services repeat the beginning in every chunk, so usually one comparison suffices. */
  replace(chunk: Fields, text: string): string {
    const known = this.#beginning;
    if (
      known !== undefined &&
      chunk['id'] === known.id &&
      chunk['created'] === known.created &&
      chunk['model'] === known.model &&
      chunk['object'] === known.object &&
      chunk['provider'] === known.provider &&
      chunk['system_fingerprint'] === known.fingerprint &&
      text.startsWith(known.text)
    ) {
      return known.replacement + text.slice(known.text.length);
    }
    return this.#learn(chunk, text);
  }

  /** The text with our head and further edits. */
  patch(chunk: Fields, text: string, further: readonly Edit[]): string {
    this.observe(chunk);
    return patchMembers(text, scanMembers(text), [...this.#editsFor(chunk), ...further]);
  }

  #editsFor(chunk: Fields): readonly Edit[] {
    const edits = chunk['system_fingerprint'] === null ? this.#editsOfNull : this.#edits;
    if (isTime(chunk['created'])) return edits;
    return [...edits, { key: 'created', json: String(this.#created ?? this.#stamp.created) }];
  }

  #learn(chunk: Fields, text: string): string {
    this.observe(chunk);
    const edits = this.#editsFor(chunk);
    const members = scanMembers(text);
    const at = members.findIndex((member) => member.key === 'choices');
    const before = members.slice(0, Math.max(at, 0));
    if (!isTime(chunk['created']) || !namesAll(before)) return patchMembers(text, members, edits);
    const fingerprint = chunk['system_fingerprint'];
    const isBehind = fingerprint === null && !before.some((member) => member.key === 'system_fingerprint');
    if (isBehind) return patchMembers(text, members, edits);
    const start = members[at]!.keyStart;
    const hasProvider = before.some((member) => member.key === 'provider');
    const own = edits.filter(({ key }) => key !== 'provider' || hasProvider);
    // Patched as if the beginning were a complete object: `patchMembers` reads nothing after the last value.
    let replacement = patchMembers(text.slice(0, start), before, own);
    if (!hasProvider) replacement += `"provider":${JSON.stringify(this.#stamp.provider)},`;
    const { id, object, created, model, provider } = chunk;
    const beginning = { text: text.slice(0, start), replacement, id, object, created, model, provider, fingerprint };
    // A `provider` after the choices would occur twice in chunks that reuse this beginning.
    if (provider === undefined || hasProvider) this.#beginning = beginning;
    else return patchMembers(text, members, edits);
    return replacement + text.slice(start);
  }
}

function namesAll(members: readonly Member[]): boolean {
  let found = 0;
  for (const { key } of members)
    if (key === 'id' || key === 'object' || key === 'created' || key === 'model') found += 1;
  return found === 4;
}
