/**
 * The filters that apply to a key, combined from all its guardrails: their findings in a body, whether it may be sent,
 * and the redacted body. If several guardrails have the same filter, the strictest action applies: block, then redact,
 * then flag.
 */
import { cut } from '../../base/characters.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits, type Edit } from '../../base/json-edits.ts';
import type { TextVisitor, VisitTexts } from '../../formats/conversation/texts.ts';
import type { FilterAction, FilterDirection, Rules } from '../settings.ts';
import type { AssignedVia } from '../store.ts';
import { BUILTINS, type BuiltinSlug } from './builtins.ts';
import { nativeModule } from './engine.ts';
import { DEEPEST, undone } from './escapes.ts';
import { offsetsOf } from './offsets.ts';
import { Effort, MAX_MATCHES, PatternSet, tooMuch } from './patterns.ts';
import { Prefilter } from './prefilter.ts';
import { type Reading, Readings, type Span } from './reading.ts';
import { bordersOf, crosses, inOrder, replaced, replacedAcross } from './redaction.ts';

/** Characters that are screened per request; a body with more text is refused. */
const MAX_TEXT = 16 * 1024 * 1024;
/** Number of matches that a refusal quotes, and the maximum length of each quote. */
const QUOTED = 10;
const QUOTED_LENGTH = 100;
const DEFAULT_LABEL = '[REDACTED]';

/** A combined filter. */
export interface Filter {
  readonly kind: 'builtin' | 'pattern';
  /** Slug, or the pattern itself. */
  readonly name: string;
  /**
   * The name shown to clients and in generation records. For answers it is the pattern's path in its guardrail, never
   * the pattern, because the pattern may be the very text that it matches.
   */
  readonly shownName: string;
  readonly action: FilterAction;
  readonly label: string;
  /** True if it only applies to text that users wrote. */
  readonly userOnly: boolean;
  /** The guardrail that sets this action. */
  readonly guardrailId: string;
  readonly via: AssignedVia;
  /** Order in which findings are reported. */
  readonly rank: number;
}

/** Number of matches of a filter in one request; the matched texts are not stored. */
export interface Hit {
  readonly filter: Filter;
  readonly matches: number;
}

interface Screened {
  /** The document to send: the same object if nothing was replaced. */
  readonly document: JsonDocument;
  readonly hits: readonly Hit[];
}

export interface Match extends Span {
  filter: Filter;
}

/** A text of a request. */
export interface SearchedText {
  readonly text: string;
  readonly byUser: boolean;
}

export interface FiltersOf {
  guardrailId: string;
  via: AssignedVia;
  rules: Pick<Rules, 'builtins' | 'patterns'>;
}

export class Filters {
  readonly #builtins: readonly Filter[];
  readonly #patterns: readonly Filter[];
  readonly #set: PatternSet | undefined;
  readonly #prefilter: Prefilter;

  private constructor(filters: readonly Filter[], set: PatternSet | undefined) {
    this.#builtins = filters.filter(({ kind }) => kind === 'builtin');
    this.#patterns = filters.filter(({ kind }) => kind === 'pattern');
    this.#set = set;
    const slugs = new Set(this.#builtins.map(({ name }) => name as BuiltinSlug));
    this.#prefilter = new Prefilter(
      [...slugs].map((slug) => BUILTINS[slug]),
      set,
    );
  }

  /** Returns undefined when no guardrail has filters. @param native as for `PatternSet.of` */
  static async of(guardrails: readonly FiltersOf[], native = nativeModule()): Promise<Filters | undefined> {
    const filters = combinedFilters(guardrails, 'request');
    if (filters.length === 0) return undefined;
    const patterns = filters.filter(({ kind }) => kind === 'pattern').map(({ name }) => name);
    return new Filters(filters, patterns.length === 0 ? undefined : await PatternSet.of(patterns, native));
  }

  /**
   * @param visit the `texts` of the document's format
   * @throws GatewayError 403 with the matches in its metadata when a filter blocks; 413 for too much text
   */
  screen(document: JsonDocument, visit: VisitTexts, clock: Clock): Screened {
    const found = new Found(this, new Effort(clock));
    const { exact } = document;
    this.#refuseTokens(exact);
    visit(exact, found);
    found.search();
    const { hits, quotes, blocked } = found.findings;
    if (blocked) throw new BlockedByFilter(hits, 'request', { patterns: quotes });
    if (!hits.some(({ filter }) => filter.action === 'redact')) return { document, hits };
    return { document: this.#redacted(document, visit, found, new Effort(clock)), hits };
  }

  /** Token ids cannot be screened, because each model has its own tokens. */
  #refuseTokens({ prompt, input }: Record<string, unknown>): void {
    if (![prompt, input].some(holdsNumbers)) return;
    if ([...this.#builtins, ...this.#patterns].every(({ action }) => action === 'flag')) return;
    const path = holdsNumbers(prompt) ? 'prompt' : 'input';
    throw new GatewayError(
      'permission_denied',
      `${path}: token ids cannot be checked by the filters of this key's guardrails; send text`,
      { path },
    );
  }

  #redacted(document: JsonDocument, visit: VisitTexts, found: Found, effort: Effort): JsonDocument {
    const clean = found.clean();
    const matches = (text: string, byUser: boolean) =>
      clean[byUser ? 'user' : 'others'].has(text) ? [] : this.matches(text, byUser, effort);
    const visitor: TextVisitor = {
      text: (text, byUser) => replaced(text, matches(text, byUser)),
      neighbours: (texts, byUser) => replacedAcross(texts, matches(texts.join(''), byUser)),
    };
    const edits: Edit[] = [];
    for (const { key, valueStart, valueEnd } of document.members) {
      const before = document.bytes.toString('utf8', valueStart, valueEnd);
      const value = parseJson(before);
      const written = stringifyJson(value);
      const member = { [key]: value };
      visit(member, visitor);
      const [[name, visited]] = Object.entries(member) as [[string, unknown]];
      const json = stringifyJson(visited);
      if (name !== key) edits.push({ key, json: undefined }, { key: name, json });
      else if (json !== written) edits.push({ key, json });
    }
    return edits.length === 0 ? document : readDocument(applyEdits(document, edits));
  }

  /** Visits the texts in which `matches` finds something, in order. */
  inEach<Text extends SearchedText>(
    texts: readonly Text[],
    effort: Effort,
    visit: (text: Text, matches: Match[]) => void,
  ): void {
    const suspects = this.#prefilter.suspects(texts, effort);
    // Suspects have another order than the texts.
    for (const text of suspects.size === 0 ? [] : texts) {
      const matches = suspects.has(text) ? this.matches(text.text, text.byUser, effort) : [];
      if (matches.length > 0) visit(text, matches);
    }
  }

  /** The matches in a text, including those in its unescaped form. @param depth level of nested escapes */
  matches(text: string, byUser: boolean, effort: Effort, depth = 0): Match[] {
    const matches = this.#matchesOf(text, byUser, effort);
    const unescaped = depth < DEEPEST ? undone(text) : undefined;
    if (unescaped === undefined) return outermost(matches);
    const further = this.matches(unescaped.text, byUser, effort, depth + 1);
    return outermost([...matches, ...further.map(({ filter, ...span }) => ({ filter, ...unescaped.original(span) }))]);
  }

  #matchesOf(text: string, byUser: boolean, effort: Effort): Match[] {
    const matches: Match[] = [];
    const readings = new Readings(text);
    const { hidden } = readings;
    const builtins = byUser ? this.#builtins : this.#builtins.filter(({ userOnly }) => !userOnly);
    if (builtins.length > 0) {
      addBuiltins(matches, builtins, readings.skeleton, effort);
      if (hidden !== undefined) addBuiltins(matches, builtins, hidden, effort);
    }
    if (this.#set === undefined) return matches;
    const read = hidden === undefined ? readings.forPatterns : [...readings.forPatterns, hidden];
    for (const reading of read) this.#addPatterns(matches, reading, effort);
    return matches;
  }

  #addPatterns(matches: Match[], reading: Reading, effort: Effort): void {
    for (const index of this.#set!.matching(reading.text, effort)) {
      add(matches, this.#patterns[index]!, this.#set!.find(index, reading.text, effort), reading);
    }
  }
}

/** All filters search a text, or a chunk of a long one, before the next, so its places are computed once. */
function addBuiltins(matches: Match[], filters: readonly Filter[], reading: Reading, effort: Effort): void {
  const found = effort.through(reading.text, (text) => {
    const offsets = offsetsOf(text);
    return filters.map(({ name }) => {
      const spans = BUILTINS[name as BuiltinSlug].find(text, offsets);
      effort.count(text.length);
      return spans;
    });
  });
  filters.forEach((filter, index) => {
    add(matches, filter, found[index]!, reading);
  });
}

/** True for token ids of one text or of several. */
function holdsNumbers(value: unknown): boolean {
  return Array.isArray(value) && value.some((item) => typeof item === 'number' || holdsNumbers(item));
}

/** Without matches within others of their filter: another reading or another form of a number finds a part of a match. */
function outermost(matches: Match[]): Match[] {
  if (matches.length < 2) return matches;
  const reached = new Map<Filter, number>();
  const inner = new Set<Match>();
  for (const match of matches.toSorted(inOrder)) {
    if (match.end <= (reached.get(match.filter) ?? -1)) inner.add(match);
    else reached.set(match.filter, match.end);
  }
  return inner.size === 0 ? matches : matches.filter((match) => !inner.has(match));
}

function add(matches: Match[], filter: Filter, spans: readonly Span[], reading: Reading): void {
  if (spans.length > MAX_MATCHES) throw tooMuch();
  for (const span of spans) matches.push({ filter, ...reading.original(span) });
}

/** Findings so far; for requests also quotes of the blocked text. */
export class Findings {
  readonly quotes: string[] = [];
  /** True if a blocking filter has matched. */
  blocked = false;
  readonly #counts = new Map<Filter, number>();
  readonly #most: number;

  /** @param most maximum number of matches per filter */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get hits(): readonly Hit[] {
    const hits = [...this.#counts].map(([filter, matches]) => ({ filter, matches }));
    return hits.sort((a, b) => a.filter.rank - b.filter.rank);
  }

  /** @throws GatewayError 413 above the maximum */
  count(filter: Filter): void {
    const count = (this.#counts.get(filter) ?? 0) + 1;
    if (count > this.#most) throw tooMuch();
    this.#counts.set(filter, count);
    this.blocked ||= filter.action === 'block';
  }

  /** @throws GatewayError 413 above the maximum */
  note({ filter, start, end }: Match, text: string): void {
    this.count(filter);
    if (filter.action !== 'block') return;
    const quote = cut(text.slice(start, end), QUOTED_LENGTH);
    if (this.quotes.length < QUOTED && !this.quotes.includes(quote)) this.quotes.push(quote);
  }
}

interface FoundText extends SearchedText {
  /** Offsets at which a joined text was joined. A match that crosses none of them is also found in a single text. */
  readonly borders?: readonly number[];
}

/** Collects all texts first and then searches them together; changes nothing. */
class Found implements TextVisitor {
  readonly findings = new Findings();
  readonly #filters: Filters;
  readonly #effort: Effort;
  readonly #texts: FoundText[] = [];
  readonly #matched = new Set<FoundText>();
  #length = 0;

  constructor(filters: Filters, effort: Effort) {
    this.#filters = filters;
    this.#effort = effort;
  }

  text(text: string, byUser: boolean): string {
    this.#length += text.length;
    if (this.#length > MAX_TEXT) throw tooMuch();
    this.#texts.push({ text, byUser });
    return text;
  }

  neighbours(texts: readonly string[], byUser: boolean): readonly string[] {
    this.#texts.push({ text: texts.join(''), byUser, borders: bordersOf(texts) });
    return texts;
  }

  /** Call after all texts are collected. @throws GatewayError 413 when the search takes too long */
  search(): void {
    this.#filters.inEach(this.#texts, this.#effort, (found, matches) => {
      this.#matched.add(found);
      for (const match of matches.sort(inOrder)) {
        if (found.borders === undefined || crosses(match, found.borders)) this.findings.note(match, found.text);
      }
    });
  }

  /** Texts without findings, by author. */
  clean(): Readonly<Record<'user' | 'others', ReadonlySet<string>>> {
    const clean = { user: new Set<string>(), others: new Set<string>() };
    for (const found of this.#texts) {
      if (!this.#matched.has(found)) clean[found.byUser ? 'user' : 'others'].add(found.text);
    }
    return clean;
  }
}

/**
 * A filter blocks a request or its answer. The client gets the matched texts of its own request, never those of an
 * answer.
 */
export class BlockedByFilter extends GatewayError {
  readonly hits: readonly Hit[];

  /** @param quoted quotes of the request, for the metadata */
  constructor(hits: readonly Hit[], what: 'request' | 'answer', quoted: { patterns?: readonly string[] } = {}) {
    const blocking = hits.filter(({ filter }) => filter.action === 'block');
    const names = blocking.map(({ filter: { kind, name, label } }) => (kind === 'builtin' ? name : label)).join(', ');
    super('permission_denied', `a guardrail of this key blocks the ${what}: ${names}`, {
      metadata: {
        error_type: 'permission_denied',
        ...quoted,
        filters: blocking.map(({ filter: { kind, shownName, guardrailId, via }, matches }) => ({
          [kind === 'builtin' ? 'slug' : what === 'request' ? 'pattern' : 'filter']: shownName.slice(0, 1_000),
          guardrail_id: guardrailId,
          guardrail_scope: via,
          ...(what === 'answer' && { matches }),
        })),
      },
    });
    this.hits = hits;
  }
}

const ONLY_REQUESTS: readonly FilterDirection[] = ['request'];
const STRICTNESS: Readonly<Record<FilterAction, number>> = { flag: 0, redact: 1, block: 2 };

/** The filters of one direction without duplicates, built-in filters first. */
export function combinedFilters(guardrails: readonly FiltersOf[], direction: FilterDirection): Filter[] {
  const byName = new Map<string, Omit<Filter, 'rank'>>();
  const offer = (filter: Omit<Filter, 'rank'>): void => {
    const id = `${filter.kind} ${filter.userOnly} ${filter.name}`;
    const present = byName.get(id);
    if (present === undefined || STRICTNESS[filter.action] > STRICTNESS[present.action]) byName.set(id, filter);
  };
  for (const { guardrailId, via, rules } of guardrails) {
    for (const { slug, action, label: given, scanScope, appliesTo } of rules.builtins ?? []) {
      if (!(appliesTo ?? ONLY_REQUESTS).includes(direction)) continue;
      const label = given ?? BUILTINS[slug as BuiltinSlug].label;
      const userOnly = direction === 'request' && scanScope === 'user_only';
      offer({ kind: 'builtin', name: slug, shownName: slug, action, label, userOnly, guardrailId, via: via });
    }
    for (const [index, { pattern: name, action, label: given, appliesTo }] of (rules.patterns ?? []).entries()) {
      if (!(appliesTo ?? ONLY_REQUESTS).includes(direction)) continue;
      const shownName = direction === 'response' ? `content_filters[${index}]` : name;
      const label = given ?? DEFAULT_LABEL;
      offer({ kind: 'pattern', name, shownName, action, label, userOnly: false, guardrailId, via: via });
    }
  }
  const all = [...byName.values()];
  const { builtin = [], pattern = [] } = Object.groupBy(all, ({ kind }) => kind);
  return [...builtin, ...pattern].map((filter, rank) => ({ ...filter, rank }));
}
