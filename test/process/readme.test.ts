/** What the README says is true: its commands and snippets run as they are written, its links lead somewhere. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS } from '../../src/providers/index.ts';
import { emptyFolder } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { PYTHON_CLIENTS, pythonWith } from '../../src/testing/process/python.ts';
import { ROOT } from '../rules/source-files.ts';

const README = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
const BLOCKS = [...README.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({
  language: language!,
  code: code!,
}));
const ADDRESS = 'http://127.0.0.1:8484';
const NO_CURL = spawnSync('curl', ['--version']).error !== undefined && 'needs curl';

function blocks(language: string): string[] {
  return BLOCKS.filter((block) => block.language === language).map(({ code }) => code);
}

const gateway = await startGatewayProcess({ after: (close) => after(close as () => Promise<void>) });
/** The code of a block, for the address of that gateway. */
const there = (code: string) => code.replaceAll(ADDRESS, gateway.url);

async function shell(code: string, cwd: string, env: Record<string, string> = {}) {
  const settings = { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env } };
  return (await promisify(execFile)('sh', ['-ec', code], settings)).stdout;
}

test('the README fits three screens and has no table', () => {
  assert.ok(README.split('\n').length <= 121);
  assert.ok(!/^\|/m.test(README));
});

test('every link of the README and of the index of the guides leads to a file, and every guide has one', () => {
  for (const file of ['README.md', 'docs/README.md', 'docs/guarantees.md']) {
    const text = readFileSync(path.join(ROOT, file), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      assert.ok(existsSync(path.join(ROOT, path.dirname(file), target)), `${file}: ${target}`);
    }
  }
});

test('the first curl answers', { skip: NO_CURL }, async () => {
  const block = blocks('sh').find((code) => code.includes('curl'));
  assert.ok(block);
  const code = there(block).replace(/sk-svc-v1-\.\.\./, INFERENCE_KEY);
  assert.match(await shell(code, gateway.home.folder), /Hello, Gatehouse/);
});

test('every command of the README does what it says', async () => {
  const { home } = gateway;
  const commands = blocks('sh').flatMap((code) => code.split('\n').filter((line) => line.startsWith('npx gatehouse')));
  const inText = [...README.matchAll(/`npx (gatehouse [^`]+)`/g)].map(([, command]) => `npx ${command}`);
  assert.ok(commands.length > 0 && inText.length > 0);
  const launcher = `${process.execPath} ${path.join(ROOT, 'bin', 'gatehouse.js')}`;
  writeFileSync(path.join(home.folder, 'config.yaml'), 'model_list: []');
  for (const command of [...commands, ...inText]) {
    const offline = command.endsWith('doctor') ? ' --offline' : '';
    const code = command.replace('npx gatehouse', launcher) + offline;
    const said = await shell(code, home.folder, { GATEHOUSE_DATA_DIR: home.dataDir, GATEHOUSE_PORT: '0' });
    assert.ok(said.length > 0 || command.includes('backup'), command);
  }
  assert.ok(existsSync(path.join(home.folder, 'gatehouse.backup')));
});

test('the yaml is a valid configuration', () => {
  const [yaml = ''] = blocks('yaml');
  const readFile = () => yaml;
  const { providers } = loadConfig({ env: { ACME_API_KEY: 'acme-key' }, readFile, cwd: '/', kinds: KINDS });
  assert.deepEqual(
    providers.filter(({ id }) => id === 'acme').map(({ models }) => models.map(({ id }) => id)),
    [['acme/large']],
  );
});

test('the JavaScript clients reach the gateway', async (t) => {
  const [code = ''] = blocks('js');
  const file = path.join(ROOT, 'node_modules', '.cache', `readme-${process.pid}.mjs`);
  t.after(() => rmSync(file, { force: true }));
  writeFileSync(
    file,
    `${there(code)}
const messages = [{ role: 'user', content: 'Hello, Gatehouse' }];
const chat = await openai.chat.completions.create({ model: 'simulated/echo', messages });
const message = await anthropic.messages.create({ model: 'simulated/echo', max_tokens: 100, messages });
console.log(chat.choices[0].message.content, message.content[0].text);`,
  );
  const said = await shell(`'${process.execPath}' '${file}'`, ROOT, { INFERENCE_KEY });
  assert.equal(said.match(/Hello, Gatehouse/g)?.length, 2);
});

test('the Python clients reach the gateway', async (t) => {
  const python = await pythonWith(PYTHON_CLIENTS);
  if (python.skip !== false) return t.skip(python.skip);
  const [code = ''] = blocks('python');
  const file = path.join(emptyFolder(t), 'readme.py');
  writeFileSync(
    file,
    `${there(code)}
messages = [{"role": "user", "content": "Hello, Gatehouse"}]
chat = openai.chat.completions.create(model="simulated/echo", messages=messages)
message = anthropic.messages.create(model="simulated/echo", max_tokens=100, messages=messages)
print(chat.choices[0].message.content, message.content[0].text)`,
  );
  const said = await python.run(t, [file], { INFERENCE_KEY });
  assert.equal(said.match(/Hello, Gatehouse/g)?.length, 2);
});
