import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNamespace, fromWireName, toWireName, wireHeader } from './namespace.ts';

test('the default namespace spells our own name', () => {
  assert.deepEqual(createNamespace(), {
    name: 'svc',
    metadataKey: 'svc_metadata',
    headerPrefix: 'X-Svc-',
    toolPrefix: 'svc:',
    modelPrefix: 'svc/',
    keepAlive: 'SVC PROCESSING',
  });
});

test('the namespace that public SDKs know is spelled as they expect it', () => {
  const { metadataKey, headerPrefix, toolPrefix, modelPrefix, keepAlive } = createNamespace('openrouter');
  assert.equal(`${headerPrefix}Metadata`, 'X-OpenRouter-Metadata');
  assert.equal(metadataKey, 'openrouter_metadata');
  assert.equal(`${toolPrefix}web_search`, 'openrouter:web_search');
  assert.equal(`${modelPrefix}auto`, 'openrouter/auto');
  assert.equal(`: ${keepAlive}`, ': OPENROUTER PROCESSING');
});

test('a request header is read under either name, ours first', () => {
  assert.equal(wireHeader({ 'x-svc-metadata': 'enabled' }, 'metadata'), 'enabled');
  assert.equal(wireHeader({ 'x-openrouter-metadata': 'enabled' }, 'metadata'), 'enabled');
  assert.equal(wireHeader({ 'x-openrouter-metadata': 'b', 'x-svc-metadata': 'a' }, 'metadata'), 'a');
  assert.equal(wireHeader({ 'x-svc-metadata': ['a', 'b'] }, 'metadata'), 'a, b');
  assert.equal(wireHeader({}, 'metadata'), undefined);
});

test('the alias is taken as our name where it is the prefix of a token, and nowhere else', () => {
  assert.equal(toWireName('openrouter:web_search'), 'svc:web_search');
  assert.equal(toWireName('openrouter/auto'), 'svc/auto');
  assert.equal(toWireName('openrouter.provide_input'), 'svc.provide_input');
  assert.equal(toWireName('openrouter_metadata'), 'svc_metadata');
  for (const other of ['openrouter', 'openrouters/x', 'acme/openrouter:x', 'OpenRouter/auto', 'svc:x', '']) {
    assert.equal(toWireName(other), other);
  }
});

test('what we emit follows the namespace', () => {
  const alias = createNamespace('openrouter');
  assert.equal(fromWireName('svc:web_search', alias), 'openrouter:web_search');
  assert.equal(fromWireName('svc/auto', alias), 'openrouter/auto');
  assert.equal(fromWireName('service/auto', alias), 'service/auto');
  assert.equal(fromWireName('svc:web_search', createNamespace()), 'svc:web_search');
});
