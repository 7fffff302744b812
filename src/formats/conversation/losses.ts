/**
 * The losses of a translation. Tuning parameters are dropped and reported. Content or features exclude the endpoint:
 * `Uncarried` is thrown, the router tries the next endpoint and answers 400 when none is left.
 */

export class Losses {
  readonly dropped: { what: string; why: string }[] = [];

  /** Reports a dropped parameter (`what` is its wire name in the client's format where known). */
  drop(what: string, why: string): void {
    this.dropped.push({ what, why });
  }
}

/** Thrown by `SpokenFormat.encode`: the format cannot carry `feature`, so the endpoint is not a candidate. */
export class Uncarried extends Error {
  readonly feature: string;

  constructor(feature: string, why: string) {
    super(`${feature}: ${why}`);
    this.name = 'Uncarried';
    this.feature = feature;
  }
}
