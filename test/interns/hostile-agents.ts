/** Agents that mean harm, as programs in real sandboxes: each is contained and reported to its caller, and the intern can be used again. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { vaultOf } from '../vault/vault.ts';
import type { Json } from '../workspaces/control.ts';
import { ChatStream, chatWith } from './chat.ts';
import { internsOf, rowsOf } from './interns.ts';
import { obedient, processesOf } from './obedient.ts';

const CANARY = 'canary-of-an-intern-0123456789';
const MB = 1024 * 1024;
const later = { after: (close: unknown) => after(close as () => Promise<void>) };

/** @param all with those that take long, or much of the machine */
export async function playHostile(all: boolean): Promise<void> {
  if (skip !== false) {
    test('hostile agents', { skip }, () => {});
    return;
  }
  const heavy = (name: string, run: () => Promise<void>) => {
    if (all) test(name, run);
  };
  const agents = obedient(later);
  const lines: string[] = [];
  const log = createLog({ stream: { write: (line: string) => lines.push(line) > 0 } as never, level: 'debug' });
  const gateway = await startGateway(later, {
    ...{ log, agent: agents.agent, providers: { text: { kind: 'chat' } } },
    yaml: { ...agents.yaml, sandboxes: { ...agents.yaml.sandboxes, disk_bytes: 32 * MB, processes: 48 } },
  });
  const { made, reaches, call } = internsOf(gateway);
  const { id } = await made({ name: 'hostile' });
  const other = await made({ name: 'other' });
  await vaultOf(gateway).call('PUT', `interns/${id}/secrets/token`, { value: CANARY, hosts: ['api.test'] });
  await call('PATCH', `/${id}`, { model: 'test/text' });
  for (const each of [id, other.id]) await call('POST', `/${each}/provision`);
  for (const each of [id, other.id]) await reaches(each, 'running');
  const { prompt, answer, send } = chatWith(gateway, id);

  /** It works as if nothing had been. */
  async function isUsable(): Promise<void> {
    const stream = await prompt('say("well")');
    assert.equal((await stream.ending()).finish, 'stop');
    assert.equal(stream.text(), 'well');
  }

  /** What the code returns, as JSON. */
  async function result(code: string): Promise<Json> {
    const stream = await prompt(`say(JSON.stringify(await (async () => { ${code} })()))`);
    const { finish, error } = await stream.ending();
    assert.equal(finish, 'stop', JSON.stringify(error));
    return JSON.parse(stream.text());
  }

  const severed = async (stream: ChatStream) => {
    assert.deepEqual(await stream.reason(), [502, 'stream_severed']);
    await isUsable();
  };

  heavy('one that floods a reader which does not keep up', async () => {
    const content = `cancelled.then(() => fs.writeFileSync('cancelled', ''));
      for (;;) { say('x'.repeat(10_000)); await sleep(0); }`;
    const { response } = await send({ messages: [{ role: 'user', content }] });
    const wasCancelled = 'return fs.existsSync("cancelled")';
    await until(() => result(wasCancelled), 'the run is cancelled');
    const text = await response.text();
    const [finish, final, done] = text
      .trim()
      .split('\n\n')
      .slice(-3)
      .map((event) => event.slice('data: '.length));
    const { code, metadata } = JSON.parse(finish!).error;
    assert.deepEqual([code, metadata], [410, { reason: 'attachment_failed', retryable: false }]);
    assert.equal(JSON.parse(final!).usage, null);
    assert.equal(done, '[DONE]');
  });

  heavy('one that hangs, and one that does not stop when it is told', async () => {
    const stream = await prompt("stubborn(); say('a'); for (;;) await sleep(1000);");
    await until(() => stream.text() === 'a', 'it runs');
    gateway.clock.jump(301_000);
    assert.deepEqual(await stream.reason(), [504, 'timeout']);
    const [agent] = agents.agents(id).slice(-1);
    gateway.clock.jump(11_000);
    await until(() => !agents.agents(id).includes(agent!), 'its process is ended');
    await isUsable();
  });

  heavy('one whose event loop stands still', async () => {
    const stream = await prompt("say('a'); await sleep(50); for (;;);");
    await until(() => stream.text() === 'a', 'it runs');
    stream.leave();
    const [agent] = agents.agents(id).slice(-1);
    const isEnded = () => {
      gateway.clock.jump(11_000);
      return !agents.agents(id).includes(agent!);
    };
    await until(isEnded, 'its process is ended');
    await isUsable();
  });

  heavy('one that writes half a line and ends, a line without an end, and no JSON', async () => {
    await severed(
      await prompt(
        `raw('{"jsonrpc":"2.0","method":"session/upd'); setTimeout(() => process.exit(), 100); await cancelled`,
      ),
    );
    await severed(await prompt(`for (let i = 0; i < 20; i++) raw('x'.repeat(1024 * 1024)); await cancelled`));
    const garbled = await prompt(`raw('no JSON\\n[]\\n{"jsonrpc":"2.0","id":7}\\n"x"\\n\\n'); say('after')`);
    assert.equal((await garbled.ending()).finish, 'stop');
    assert.equal(garbled.text(), 'after');
    await isUsable();
  });

  test('one that asks a thousand questions at once', async () => {
    const code = `const answers = [];
      for (let i = 0; i < 1000; i++) answers.push(ask());
      await Promise.all(answers.slice(16));
      fs.writeFileSync('asked', '');
      const all = await Promise.all(answers);
      say(String(all.filter(({ outcome }) => outcome.outcome === 'selected').length))`;
    let stream = await prompt(code, { approval_mode: 'manual' });
    await until(() => existsSync(path.join(agents.workspace(id), 'asked')), 'the others are refused');
    for (let asked = 0; asked < 16; asked += 1) {
      const { finish, call: question, session } = await stream.ending();
      assert.equal(finish, 'tool_calls');
      stream = await answer(question, session, 'allow_once');
    }
    assert.equal((await stream.ending()).finish, 'stop');
    assert.equal(stream.text(), '16');
  });

  heavy('one that forks without end', async () => {
    const stream = await prompt(
      `child.spawn('sh', ['-c', 'f() { f | f & }; f'], { stdio: 'ignore' }); say('a'); await cancelled`,
    );
    await until(() => stream.text() === 'a' || stream.isOver, 'it forks');
    assert.equal((await gateway.get('/models')).status, 200);
    assert.equal(
      (
        await chatWith(gateway, other.id)
          .prompt('say("other")')
          .then((each) => each.ending())
      ).finish,
      'stop',
    );
    stream.leave();
    assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
    assert.deepEqual(agents.agents(id), []);
    await call('POST', `/${id}/provision`);
    await reaches(id, 'running');
    await isUsable();
  });

  test('one that reaches for the gateway, other processes, the metadata address and another intern', async () => {
    const [{ port: peer }] = (await rowsOf(gateway, 'select port from intern_processes')) as [{ port: number }];
    const port = new URL(gateway.url).port;
    const tried = await result(`
      const dialled = (port, host) => new Promise((resolve) => {
        const socket = net.connect({ port, host, timeout: 2000 });
        socket.on('connect', () => resolve('connected')).on('timeout', () => resolve('nothing')).on('error', ({ code }) => resolve(code));
      });
      const asked = (method, path) => new Promise((resolve) => {
        const request = http.request({ host: '127.0.0.1', port: 3128, method, path });
        request.on('connect', ({ statusCode }) => resolve(statusCode)).on('response', ({ statusCode }) => resolve(statusCode));
        request.on('error', ({ code }) => resolve(code)).end();
      });
      const out = {};
      for (const port of [${port}, ${peer}]) {
        out['dial ' + port] = await dialled(port, '127.0.0.1');
        for (const host of ['127.0.0.1', 'localhost', '[::1]', '0x7f000001', '2130706433']) {
          out['connect ' + host + port] = await asked('CONNECT', host + ':' + port);
          out['get ' + host + port] = await asked('GET', 'http://' + host + ':' + port + '/health');
        }
      }
      out.dialMetadata = await dialled(80, '169.254.169.254');
      for (const host of ['169.254.169.254', '[fd00:ec2::254]', '0xa9fea9fe']) {
        out['metadata ' + host] = await asked('GET', 'http://' + host + '/latest/meta-data/');
        out['tunnel ' + host] = await asked('CONNECT', host + ':443');
      }
      for (const path of ['/api/v1/interns', '/api/v1/interns/${other.id}', '/api/v1/vault/secrets', '/api/v1/keys', '/metrics']) {
        out['model route ' + path] = await asked('GET', 'http://127.0.0.1:3128' + path);
      }
      return out;`);
    for (const [what, outcome] of Object.entries(tried)) {
      const isHeld = typeof outcome === 'string' ? outcome !== 'connected' : (outcome as number) >= 400;
      assert.ok(isHeld, `${what}: ${outcome}`);
    }
    const files = await result(`
      const find = (folder) => { try { return fs.readdirSync(folder); } catch ({ code }) { return code; } };
      return [find('${agents.home(other.id)}'), find('${agents.workspace(id)}'), process.pid, find('/proc').filter((name) => /^\\d+$/.test(name)).length];`);
    assert.deepEqual(files.slice(0, 2), ['ENOENT', 'ENOENT']);
    assert.ok(files[3] < 20, 'it sees its own processes only');
  });

  test('one that tells everything it can read: no value of its vault', async () => {
    gateway.upstream.script('text', answerOf('chat', true, { text: 'Thanks.', finish: 'stop' }));
    const code = `
      let all = JSON.stringify(process.env);
      for (const pid of fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name))) {
        for (const file of ['environ', 'cmdline', 'maps']) try { all += fs.readFileSync('/proc/' + pid + '/' + file, 'latin1'); } catch {}
      }
      for (const folder of ['/run', '/tmp', process.env.HOME, '/workspace', '/etc']) {
        let entries = [];
        try { entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true }); } catch {}
        for (const entry of entries) {
          try { if (entry.isFile()) all += fs.readFileSync(entry.parentPath + '/' + entry.name, 'latin1').slice(0, 100000); } catch {}
        }
      }
      const placeholder = process.env.token ?? process.env.TOKEN;
      fs.writeFileSync('stolen', String(placeholder));
      console.error(placeholder);
      const body = JSON.stringify({ model: 'test/text', stream: true, messages: [{ role: 'user', content: String(placeholder) }] });
      await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body, headers: { 'content-type': 'application/json', authorization: 'Bearer ' + placeholder } }).then((response) => response.text());
      for (let i = 0; i < all.length; i += 30000) { say(all.slice(i, i + 30000)); await sleep(1); }
      say('placeholder ' + placeholder);`;
    const stream = await prompt(code);
    const { finish, error } = await stream.ending();
    assert.equal(finish, 'stop', JSON.stringify(error));
    assert.match(stream.text(), /placeholder [^u]\S{8,}/);
    const [request] = gateway.upstream.requests('text').slice(-1);
    assert.ok(request, 'the model was asked');
    log.flush();
    const everything = [
      JSON.stringify(stream.events),
      gateway.upstream
        .requests('text')
        .map(({ body, headers }) => JSON.stringify(headers) + body.toString())
        .join(),
      ...lines,
      await wholeDatabase(gateway.target),
    ];
    for (const text of everything) assert.ok(!text.includes(CANARY), text.slice(0, 300));
  });

  heavy('one that fills its disk', async () => {
    const code = "for (let i = 0; ; i++) { fs.writeFileSync('full' + i, Buffer.alloc(4e6)); await sleep(1); }";
    const { error } = await (await prompt(code)).ending();
    assert.equal(error.metadata.reason, 'stream_severed');
    assert.match(error.message, /disk is full/);
    const isSaid = (line: string) => line.includes('the agent of an intern ended') && line.includes('"reason":"disk"');
    const isLogged = () => {
      log.flush();
      return lines.some(isSaid);
    };
    await until(isLogged, 'the log says why');
    // It starts again, is told, and can remove something.
    const tidy = "say(note); for (const name of fs.readdirSync('.')) if (name.startsWith('full')) fs.rmSync(name);";
    const tidied = await prompt(tidy);
    assert.equal((await tidied.ending()).finish, 'stop');
    assert.match(tidied.text(), /your disk is full/);
    assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
    await call('POST', `/${id}/provision`);
    await reaches(id, 'running');
    const again = await prompt("fs.writeFileSync('again', Buffer.alloc(8e6)); say(note || 'well')");
    assert.equal((await again.ending()).finish, 'stop');
    assert.equal(again.text(), 'well');

    // Its reserve is given once: one that only fills it ends up where nothing can be written.
    const accepted = async () => {
      const { response, abort } = await send({ messages: [{ role: 'user', content: code }] });
      if (response.status === 200) await new ChatStream(response, abort).whole();
      else assert.equal(response.status, 502, await response.text());
      return response.status === 200;
    };
    for (let tries = 0; await accepted(); tries += 1) assert.ok(tries < 6, 'it may fill its disk for ever');
  });

  test('nothing of them is left once they are deleted', async () => {
    for (const each of [id, other.id]) await call('DELETE', `/${each}`);
    for (const each of [id, other.id]) {
      await until(async () => (await call('GET', `/${each}`)).status === 404, 'the intern is gone');
      assert.deepEqual(processesOf(`i${each.replaceAll('-', '')}`), []);
    }
  });
}
