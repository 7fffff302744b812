/**
 * What a translation could not carry. A tuning knob is dropped and reported; content or a feature that cannot be
 * carried refuses the endpoint: `Uncarried` is thrown, the router tries the next one and answers 400 when none is left.
 */

export class Losses {
  readonly dropped: { what: string; why: string }[] = [];

  /** Reports a knob (`what` is its wire name in the client's form where known) that the spoken form has no place for. */
  drop(what: string, why: string): void {
    this.dropped.push({ what, why });
  }
}

/** Thrown by `SpokenFormat.encode`: this form cannot carry `feature`, so the endpoint is no candidate. */
export class Uncarried extends Error {
  readonly feature: string;

  constructor(feature: string, why: string) {
    super(`${feature}: ${why}`);
    this.name = 'Uncarried';
    this.feature = feature;
  }
}
