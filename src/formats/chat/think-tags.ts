/**
 * Splits off thinking at the beginning of the text, between `<think>` and `</think>`, as sent by servers that run a
 * thinking model without parsing its output (`thinkTags` of the dialect).
 */
const OPENING = '<think>';
const CLOSING = '</think>';

export interface Told {
  reasoning: string;
  text: string;
}

export class ThinkTags {
  #state: 'start' | 'thinking' | 'after' | 'over' = 'start';
  #held = '';

  get over(): boolean {
    return this.#state === 'over';
  }

  /** The events of a piece of content. Text that may be the start of a tag is held back until that is decided. */
  read(piece: string): Told {
    const told = { reasoning: '', text: '' };
    let rest = this.#held + piece;
    this.#held = '';
    if (this.#state === 'start') {
      const begun = rest.trimStart();
      if (OPENING.startsWith(begun)) {
        this.#held = rest;
        return told;
      }
      this.#state = begun.startsWith(OPENING) ? 'thinking' : 'over';
      if (this.#state === 'thinking') rest = begun.slice(OPENING.length);
    }
    if (this.#state === 'thinking') rest = this.#think(rest, told);
    if (this.#state === 'after') {
      // Line breaks between the tag and the answer belong to neither.
      rest = rest.replace(/^[\r\n]+/, '');
      if (rest !== '') this.#state = 'over';
    }
    told.text = rest;
    return told;
  }

  /** The content is complete: returns what was held back. */
  end(): Told {
    const held = this.#held;
    const state = this.#state;
    this.#held = '';
    this.#state = 'over';
    return state === 'thinking' ? { reasoning: held, text: '' } : { reasoning: '', text: held };
  }

  #think(rest: string, told: Told): string {
    const end = rest.indexOf(CLOSING);
    if (end !== -1) {
      told.reasoning = rest.slice(0, end);
      this.#state = 'after';
      return rest.slice(end + CLOSING.length);
    }
    let kept = Math.min(CLOSING.length - 1, rest.length);
    while (kept > 0 && !CLOSING.startsWith(rest.slice(rest.length - kept))) kept -= 1;
    told.reasoning = rest.slice(0, rest.length - kept);
    this.#held = rest.slice(rest.length - kept);
    return '';
  }
}

/** The same for complete content; undefined when it does not begin with thinking. */
export function splitThinking(content: string): Told | undefined {
  if (!content.trimStart().startsWith(OPENING)) return undefined;
  const tags = new ThinkTags();
  const told = tags.read(content);
  const last = tags.end();
  return { reasoning: told.reasoning + last.reasoning, text: told.text + last.text };
}
