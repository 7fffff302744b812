/** The facts shipped with the package. Every row has its source and date; `snapshot.test.ts` checks them all. */
import { type Facts, type FactsFile, factsFrom } from '../facts.ts';
import file from './models.json' with { type: 'json' };

/** Validated by the project's tests, so a start need not validate it again. */
export const SHIPPED_FACTS: Facts = factsFrom(file as FactsFile);
