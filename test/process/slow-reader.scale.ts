/** Bounded memory with a slow reader on a stream of 100 MiB. */
import { test } from 'node:test';
import { slowReader } from './slow-reader.ts';

test('memory stays flat while a slow reader takes 100 MiB', (t) => slowReader(t, 100));
