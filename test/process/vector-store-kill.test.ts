/** Kill -9 while a file is added to a vector store. */
import { test } from 'node:test';
import { killRound } from './vector-store-kill.ts';

test('a file is added once after kill -9, and vectors that were made are not paid again', (t) => killRound(t, 2));
