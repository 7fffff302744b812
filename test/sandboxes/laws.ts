/** What works in every sandbox, whatever runs it: streams, signals, programs, files, snapshots. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { type Blobs, blobMigrations, createBlobs, diskBackend } from '../../src/blobs/index.ts';
import { run, type Sandbox, type Sandboxes } from '../../src/sandboxes/index.ts';
import { emptyFolder, freshDatabase } from '../../src/testing/database/database.ts';
import { shell } from '../../src/testing/sandboxes/sandboxes.ts';

const MB = 1024 * 1024;

interface Place {
  after(end: () => unknown): void;
}

interface LawParts {
  place: Place;
  /** For a program that the sandbox brings. */
  folder: string;
  /** @returns the sandboxes of one process, and those of another one on the same machine or cluster */
  open(blobs: Blobs, program: string): Promise<{ sandboxes: Sandboxes; others: Sandboxes }>;
}

/** @returns the sandbox of most tests, once it exists */
export function sandboxLaws({ place, folder, open }: LawParts): () => Sandbox {
  const stored = emptyFolder(place);
  let sandboxes: Sandboxes;
  let others: Sandboxes;
  let box: Sandbox;
  before(async () => {
    const { database } = await freshDatabase(place, { migrations: blobMigrations });
    const blobs = createBlobs({ database, clock: systemClock, log: silentLog, backend: diskBackend(stored) });
    const program = path.join(folder, 'tool');
    mkdirSync(path.join(program, 'bin'), { recursive: true });
    writeFileSync(path.join(program, 'bin', 'greet'), '#!/bin/sh\necho "hello $1"\n');
    chmodSync(path.join(program, 'bin', 'greet'), 0o755);
    ({ sandboxes, others } = await open(blobs, program));
    const programs = [{ name: 'tool', path: program }];
    box = await sandboxes.create({ id: 'box', owner: 'test', environment: { OF_BOX: 'a\n"b' }, programs });
  });

  test('output arrives while a command runs, and input reaches it', async () => {
    const echo = await box.exec({ argv: ['cat'], timeoutMs: null });
    const lines = echo.stdout[Symbol.asyncIterator]();
    for (const word of ['one', 'two']) {
      echo.stdin.write(word);
      assert.equal(String((await lines.next()).value), word);
    }
    echo.stdin.end();
    assert.deepEqual(await echo.ended, { code: 0, reason: 'exit' });
  });

  test('a command that is ended while it starts ends, whenever that is', async () => {
    const times = [1, 4, 8, 12, 16, 20, 24, 30, 40];
    const endings = times.map(async (timeoutMs) => (await run(box, { argv: ['sleep', '1000'], timeoutMs })).ending);
    for (const ending of await Promise.all(endings)) assert.deepEqual(ending, { code: null, reason: 'time' });
  });

  test('a command has its own variables, folder and exit code', async () => {
    const argv = ['sh', '-c', 'printf "%s %s %s" "$OF_BOX" "$OWN" "$PWD"; echo problem >&2; exit 7'] as const;
    const { ending, stdout, stderr } = await run(box, { argv, cwd: '/tmp', environment: { OWN: 'own' } });
    assert.deepEqual(
      [String(stdout), String(stderr), ending],
      ['a\n"b own /tmp', 'problem\n', { code: 7, reason: 'exit' }],
    );
    assert.deepEqual((await run(box, { argv: ['no-such-program'] })).ending, { code: 127, reason: 'exit' });
    assert.equal((await run(box, { argv: ['sh', '-c', 'kill -SEGV $$'] })).ending.code, 139);
    const lost = await run(box, { argv: ['true'], cwd: '/nowhere' });
    assert.deepEqual([lost.ending.reason, /nowhere/.test(String(lost.stderr))], ['lost', true]);
  });

  test('signals reach the first process, and the last one ends all', async () => {
    const script = `trap 'echo stopping; exit 3' TERM; echo ready; while :; do sleep 0.05; done`;
    const polite = await box.exec({ argv: ['sh', '-c', script] });
    polite.stdout.once('data', () => polite.signal('SIGTERM'));
    polite.stdout.resume();
    assert.deepEqual(await polite.ended, { code: 3, reason: 'exit' });
    const deaf = await box.exec({ argv: ['sh', '-c', "trap '' TERM; echo ready; sleep 1000"] });
    deaf.stdout.once('data', () => {
      deaf.signal('SIGTERM');
      deaf.signal('SIGKILL');
    });
    assert.deepEqual(await deaf.ended, { code: 137, reason: 'exit' });
  });

  test('a brought program is found, and cannot be changed', async () => {
    assert.equal((await shell(box, 'greet you')).out, 'hello you\n');
    assert.notEqual((await shell(box, 'echo x > /opt/tool/bin/greet')).code, 0);
  });

  test('files are read as they were written, whatever their names and contents', async () => {
    const segment = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 20 })
      .map((name) => name.replaceAll(/[/\0]/g, '_').toWellFormed())
      .filter((name) => name !== '.' && name !== '..');
    const sample = fc.record({
      names: fc.array(segment, { minLength: 1, maxLength: 3 }),
      bytes: fc.uint8Array({ maxLength: 2000 }),
    });
    await fc.assert(
      fc.asyncProperty(sample, async ({ names, bytes }) => {
        const file = `law/${names.join('/')}`;
        await run(box, { argv: ['rm', '-rf', '/workspace/law'] });
        await box.writeFile(file, Buffer.from(bytes));
        assert.deepEqual(await box.readFile(file, 2000), Buffer.from(bytes));
        const entries = await box.listFiles(path.posix.dirname(`/workspace/${file}`), 10);
        assert.deepEqual(
          entries.map(({ name, kind, bytes: size }) => [name, kind, size]),
          [[names.at(-1), 'file', bytes.length]],
        );
      }),
      { numRuns: 6 },
    );
  });

  test('a file keeps its rights when it is replaced, and is whole or unchanged', async () => {
    await shell(box, 'printf "#!/bin/sh\\necho old\\n" > script; chmod 750 script');
    await box.writeFile('script', '#!/bin/sh\necho new\n');
    assert.equal((await shell(box, './script; stat -c %a script')).out, 'new\n750\n');
    await assert.rejects(box.readFile('script', 5), { status: 413 });
    await assert.rejects(box.readFile('none', 5), { status: 404 });
    await assert.rejects(box.readFile('script/below', 5), { status: 404 });
    await assert.rejects(box.writeFile('script/below', 'x'), { status: 400 });
    await assert.rejects(box.writeFile('a/', 'x'), { status: 400 });
    await assert.rejects(box.writeFile('a\0b', 'x'), { status: 400 });
    await assert.rejects(box.readFile('x'.repeat(5000), 5), { status: 400 });
    await assert.rejects(box.listFiles('script', 5), { status: 400 });
    await assert.rejects(box.listFiles('/usr/bin', 5), { status: 413 });
    assert.equal((await shell(box, 'ls -A | grep -c "^.write-"')).out, '0\n');
  });

  test('a snapshot holds workspace and home, and becomes those of another sandbox', async () => {
    const noise = randomBytes(300_000);
    await box.writeFile('noise', noise);
    const make = `ln -s /etc/passwd link; mkfifo pipe; truncate -s 500M holes; chmod 750 noise; touch 'new
line'; mkdir -p "$HOME/.config"; echo setting > "$HOME/.config/x"; touch hidden; chmod 000 hidden; chmod 711 . || true`;
    assert.equal((await shell(box, make)).code, 0);
    const blob = await box.snapshot();
    assert.ok(blob.bytes > 300_000 && blob.bytes < 2 * MB, `${blob.bytes} bytes`);
    const other = await sandboxes.create({ id: 'other', owner: 'test' });
    await other.writeFile('before', 'is replaced');
    const { out: mode } = await shell(other, 'stat -c %a .');
    await other.restore(blob.id);
    assert.equal((await shell(other, 'stat -c %a .')).out, mode, 'the folder may belong to somebody else');
    assert.deepEqual(await other.readFile('noise', MB), noise);
    const look = `readlink link; stat -c '%F %a' noise pipe; stat -c %s holes; cat "$HOME/.config/x"; ls -d before 'new
line' 2>/dev/null`;
    const expected = '/etc/passwd\nregular file 750\nfifo 644\n524288000\nsetting\nnew\nline\n';
    assert.equal((await shell(other, look)).out, expected);
    await other.destroy();
  });

  test('a snapshot that is damaged or does not fit is not restored', async () => {
    const files = () => readdirSync(stored, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const small = await sandboxes.create({ id: 'small', owner: 'test', limits: { diskBytes: 16 * MB } });
    const { id } = await box.snapshot();
    await assert.rejects(small.restore(id), { status: 413 });
    for (const { parentPath, name } of files()) writeFileSync(path.join(parentPath, name), 'not an archive');
    await assert.rejects(small.restore(id), (error: Error) => !/archive/.test(error.message));
    await small.destroy();
  });

  test('a workspace lasts until it is destroyed, and runs once', async () => {
    const again = await sandboxes.create({ id: 'lasting', owner: 'intern 1' });
    await shell(again, 'echo kept > file; echo kept > "$HOME/file"; echo gone > /tmp/file');
    const second = others;
    await assert.rejects(second.create({ id: 'lasting', owner: 'intern 1' }), { status: 409 });
    await assert.rejects(second.destroy('lasting'), { status: 409 });
    const states = (await second.list()).filter(({ id }) => id === 'lasting');
    assert.deepEqual(states, [{ id: 'lasting', owner: 'intern 1', running: true }]);
    await again.stop();
    const resumed = await second.create({ id: 'lasting', owner: 'intern 1' });
    assert.equal((await shell(resumed, 'cat file "$HOME/file" /tmp/file 2>/dev/null')).out, 'kept\nkept\n');
    await resumed.destroy();
    await second.destroy('lasting');
    assert.ok(!(await second.list()).some(({ id }) => id === 'lasting'));
  });

  return () => box;
}
