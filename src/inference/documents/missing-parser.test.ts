import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { silentLog } from '../../base/log.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { docxOf } from '../../testing/documents/docx.ts';
import { pdfOf } from '../../testing/documents/pdf.ts';

test('a parser that is not installed is logged once, by name, and the document is not called unreadable', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-documents-'));
  t.after(() => rmSync(folder, { recursive: true }));
  // There, no package is found.
  cpSync(import.meta.dirname, folder, { recursive: true });
  const load = <Module>(file: string) => import(pathToFileURL(path.join(folder, file)).href) as Promise<Module>;
  const { DocxReader } = await load<typeof import('./docx-reader.ts')>('docx-reader.ts');
  const { PdfReader } = await load<typeof import('./pdf-reader.ts')>('pdf-reader.ts');
  const { PageReader } = await load<typeof import('./page-reader.ts')>('page-reader.ts');

  const logged: string[] = [];
  const log = {
    ...silentLog,
    error: (event: string, fields: { cause?: Error } = {}) => void logged.push(`${event}: ${fields.cause?.message}`),
  };
  const parts = { clock: new TestClock(), log };
  const [docx, pdf, pages] = [new DocxReader(parts), new PdfReader(parts), new PageReader(parts)];
  t.after(() => Promise.all([docx.close(), pdf.close(), pages.close()]));

  const unavailable = { fault: 'unavailable' };
  assert.deepEqual(await docx.read(docxOf(['text'])), unavailable);
  assert.deepEqual(await docx.read(docxOf(['again'])), unavailable);
  assert.deepEqual(await pdf.read(pdfOf('text')), unavailable);
  assert.deepEqual(await pages.read({ html: '<p>text', url: 'https://site.test/' }), unavailable);
  const packages = ['mammoth', 'unpdf', 'defuddle'];
  assert.equal(logged.length, packages.length);
  logged.forEach((line, index) => {
    assert.match(line, new RegExp(`^a parser of documents cannot be loaded: .*'${packages[index]}'`));
  });
});
