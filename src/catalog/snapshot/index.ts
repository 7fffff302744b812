/** The facts that come with the package. Every row says where it was read and when; `snapshot.test.ts` checks them all. */
import { type Facts, type FactsFile, factsFrom } from '../facts.ts';
import file from './models.json' with { type: 'json' };

/** Checked when the project is tested, so it is not checked again at every start. */
export const SHIPPED_FACTS: Facts = factsFrom(file as FactsFile);
