import assert from 'node:assert/strict';
import test from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { SERVED_FORMATS } from '../index.ts';
import { serverToolName } from './refusals.ts';
import { DISABLEABLE, SERVER_TOOLS } from './server-tool.ts';
import { useOf } from './uses.ts';

const GREETING = [{ role: 'user', content: 'hi' }];

/** The path of the refusal; undefined when the request passes. */
function refused(format: (typeof SERVED_FORMATS)[number], more: object): unknown {
  try {
    format.check({
      model: 'a/b',
      max_tokens: 10,
      messages: GREETING,
      input: 'hi',
      contents: [{ parts: [{ text: 'hi' }] }],
      ...more,
    });
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400);
    return error.details.path;
  }
}

for (const format of SERVED_FORMATS) {
  test(`${format.id}: a server tool that is not built is refused by name, and so is one that does not exist`, () => {
    const names = SERVER_TOOLS.filter(({ built }) => !built).map(({ name }) => name);
    for (const name of [...names, 'svc:nothing']) {
      for (const type of [name, name.replace('svc:', 'openrouter:')]) {
        assert.equal(refused(format, { tools: [{ type }] }), 'tools[0].type', type);
      }
    }
  });
}

test("only chat takes a vendor's type of web search for the gateway's own: elsewhere the vendor runs it", () => {
  const types = ['web_search', 'web_search_preview', 'web_search_preview_2025_03_11', 'web_search_2025_08_26'];
  for (const { id } of SERVED_FORMATS) {
    for (const type of types) {
      assert.equal(serverToolName({ type }, id), id === 'chat' ? 'svc:web_search' : undefined, `${id} ${type}`);
    }
  }
});

test('every server tool that can be disabled is found under each of its names', () => {
  for (const name of DISABLEABLE) {
    const { plugin, member, vendorMembers = [] } = SERVER_TOOLS.find((tool) => tool.name === name)!;
    const bare = name.replace('svc:', 'openrouter:');
    assert.equal(useOf(name, { tools: [{ type: 'function' }, { type: bare }] }), 'tools[1].type');
    for (const google of vendorMembers) {
      assert.equal(useOf(name, { tools: [{ functionDeclarations: [] }, { [google]: {} }] }), `tools[1].${google}`);
      const snake = google.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      assert.equal(useOf(name, { tools: [{ [snake]: {} }] }), `tools[0].${snake}`);
    }
    if (plugin !== undefined) {
      assert.equal(useOf(name, { plugins: [null, { id: plugin, enabled: false }] }), undefined);
      assert.equal(useOf(name, { plugins: [null, { id: plugin }] }), 'plugins[1].id');
    }
    if (member !== undefined) assert.equal(useOf(name, { [member]: {} }), member);
    const others = { tools: [{ type: 'custom', name }], plugins: [{ id: 'other' }, {}], [member ?? 'x']: null };
    assert.equal(useOf(name, others), undefined);
  }
});
