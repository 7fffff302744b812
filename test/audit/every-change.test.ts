/**
 * No change of the control plane escapes the audit log: every operation that is not a GET is called so that it changes
 * something, and the log must have an entry of that request. One without an entry here that says how to call it, or why it changes
 * nothing, fails. What is asked for a second time changes nothing, and is not entered.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCIM } from '../../src/http/access-rule.ts';
import type { Operation } from '../../src/http/operation.ts';
import { operations } from '../../src/operations.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { startDirectory } from '../scim/directory.ts';
import type { Json } from '../workspaces/control.ts';

/** Why an operation has no entry. */
const EXCEPTIONS: Record<string, string> = {
  createChatCompletion: 'inference: its row is in the ledger',
  createMessage: 'inference',
  createResponse: 'inference',
  cancelResponse: 'inference',
  compactResponse: 'inference',
  createConversation: 'content of requests, not of the control plane',
  updateConversation: 'content',
  deleteConversation: 'shown in test/responses/conversations.test.ts',
  createConversationItems: 'content',
  deleteConversationItem: 'content',
  deleteResponse: 'shown in test/responses/rules.test.ts',
  createCompletion: 'inference',
  generateContent: 'inference',
  generateContentOfAuthor: 'inference',
  generateContentBeta: 'inference',
  generateContentOfAuthorBeta: 'inference',
  createEmbeddings: 'inference',
  createSystemOne: 'inference',
  createDecision: 'inference',
  rerank: 'inference',
  createImage: 'inference',
  createImageGeneration: 'inference',
  createSpeech: 'inference',
  createVideo: 'inference',
  remixVideo: 'inference',
  deleteVideo: 'shown in test/single/videos.test.ts',
  createModeration: 'inference',
  editImage: 'inference',
  varyImage: 'inference',
  createTranscription: 'inference',
  createTranslation: 'inference',
  countMessageTokens: 'inference',
  countResponseTokens: 'inference',
  takeConsent: 'makes a code as createAuthKeysCode does',
  exchangeAuthCodeForAPIKey: 'makes a key as createKey does, shown in test/sign-in/oauth.test.ts',
  createOauthToken:
    'a token changes nothing; the key that signs it has an entry, shown in test/sign-in/federation/exchange.test.ts',
  createConsoleSession: 'shown in test/console/sessions.test.ts',
  beginConsoleOidcSignIn: 'stores nothing',
  deleteConsoleSession: 'ends the session of a browser',
  setConsoleInferenceKey: 'concerns the session of a browser',
  uploadFile: 'takes a form; its entry is shown in test/files/files.test.ts',
  deleteFile: 'shown in test/files/files.test.ts',
  startGoogleFileUpload: 'nothing is changed until the file is there',
  startGoogleFileUploadBeta: 'nothing is changed until the file is there',
  continueGoogleFileUpload: 'its entry is shown in test/files/google-files.test.ts',
  deleteGoogleFile: 'as deleteFile, shown in test/files/files.test.ts',
  deleteMemory: 'shown in test/inference/memory-tool.test.ts',
  createVectorStore: 'shown in test/vector-stores/vector-stores.test.ts',
  updateVectorStore: 'shown in test/vector-stores/vector-stores.test.ts',
  deleteVectorStore: 'shown in test/vector-stores/vector-stores.test.ts',
  createVectorStoreFile: 'shown in test/vector-stores/vector-stores.test.ts',
  updateVectorStoreFile: 'shown in test/vector-stores/vector-stores.test.ts',
  deleteVectorStoreFile: 'shown in test/vector-stores/vector-stores.test.ts',
  createVectorStoreFileBatch: 'shown in test/vector-stores/vector-stores.test.ts',
  cancelVectorStoreFileBatch: 'shown in test/vector-stores/vector-stores.test.ts',
  searchVectorStore: 'reads',
  promoteContainerFile: 'shown in test/containers/containers.test.ts',
  createBatch: 'shown in test/batches/batches.test.ts',
  cancelBatch: 'shown in test/batches/batches.test.ts',
  deleteBatch: 'shown in test/batches/batches.test.ts',
  createMessageBatch: 'shown in test/batches/anthropic.test.ts',
  cancelMessageBatch: 'shown in test/batches/anthropic.test.ts',
  deleteMessageBatch: 'shown in test/batches/anthropic.test.ts',
  storeVaultSecret: 'shown in test/vault/operations.test.ts',
  deleteVaultSecret: 'shown in test/vault/operations.test.ts',
  storeInternVaultSecret: 'shown in test/vault/owners.test.ts',
  deleteInternVaultSecret: 'shown in test/vault/owners.test.ts',
  copyVaultSecretsToIntern: 'shown in test/vault/owners.test.ts',
  createIntern: 'shown in test/interns/operations.test.ts',
  updateIntern: 'shown in test/interns/operations.test.ts',
  deleteIntern: 'shown in test/interns/operations.test.ts',
  provisionIntern: 'shown in test/interns/lifecycle.test.ts',
  suspendIntern: 'shown in test/interns/lifecycle.test.ts',
  createInternChatCompletion: 'the work of an agent; its model calls are in the ledger',
  invokeIntern: 'as a chat',
  rotateBatchCallbackSecret: 'shown in test/batches/callback.test.ts',
  submitGenerationFeedback: 'an opinion about an answer governs nothing',
  queryAnalytics: 'reads',
  testGuardrail: 'reads',
  testObservabilityDestination: 'reads',
  searchScimUsers: 'reads',
  searchScimGroups: 'reads',
  scimSearch: 'reads',
  scimMePost: 'is always refused with 501',
  scimMePut: 'is always refused with 501',
  scimMePatch: 'is always refused with 501',
  scimMeDelete: 'is always refused with 501',
  scimBulk: 'is always refused with 501',
};

interface Call {
  path: string;
  body?: Json;
}

/** What the calls may use; all of it exists. */
interface Known {
  hash: string;
  rotatedHash: string;
  userId: string;
  workspaceId: string;
  guardrailId: string;
  scimUserId: string;
  scimGroupId: string;
  mappingId: string;
  byokCredentialId: string;
  destinationId: string;
}

/** In this order: what one makes or takes away others may need. */
const CALLS: Record<string, (known: Known) => Call> = {
  createKey: () => ({ path: '/keys', body: { name: 'made' } }),
  updateKey: ({ hash }) => ({ path: `/keys/${hash}`, body: { name: 'renamed' } }),
  rotateKey: ({ rotatedHash }) => ({
    path: `/keys/${rotatedHash}/rotate`,
    body: { revoke_previous_after_seconds: null },
  }),
  createAuthKeysCode: () => ({ path: '/auth/keys/code', body: { callback_url: 'http://localhost/' } }),
  createWorkspace: () => ({ path: '/workspaces', body: { name: 'made', slug: 'made' } }),
  updateWorkspace: ({ workspaceId }) => ({ path: `/workspaces/${workspaceId}`, body: { name: 'renamed' } }),
  // Who made the workspace is in it.
  removeWorkspaceMembers: ({ workspaceId, userId }) => ({
    path: `/workspaces/${workspaceId}/members/remove`,
    body: { user_ids: [userId] },
  }),
  addWorkspaceMembers: ({ workspaceId, userId }) => ({
    path: `/workspaces/${workspaceId}/members/add`,
    body: { user_ids: [userId] },
  }),
  upsertWorkspaceBudget: ({ workspaceId }) => ({
    path: `/workspaces/${workspaceId}/budgets/daily`,
    body: { limit_usd: 1 },
  }),
  deleteWorkspaceBudget: ({ workspaceId }) => ({ path: `/workspaces/${workspaceId}/budgets/daily` }),
  createPresetsChatCompletions: () => ({ path: '/presets/made/chat/completions', body: { temperature: 0 } }),
  createPresetsMessages: () => ({ path: '/presets/made/messages', body: { temperature: 0.5 } }),
  createPresetsResponses: () => ({ path: '/presets/made/responses', body: { temperature: 1 } }),
  deletePreset: () => ({ path: '/presets/made' }),
  createGuardrail: () => ({ path: '/guardrails', body: { name: 'made' } }),
  updateGuardrail: ({ guardrailId }) => ({ path: `/guardrails/${guardrailId}`, body: { name: 'renamed' } }),
  assignKeys: ({ guardrailId, hash }) => ({
    path: `/guardrails/${guardrailId}/assignments/keys`,
    body: { key_hashes: [hash] },
  }),
  unassignKeys: ({ guardrailId, hash }) => ({
    path: `/guardrails/${guardrailId}/assignments/keys/remove`,
    body: { key_hashes: [hash] },
  }),
  assignMembers: ({ guardrailId, userId }) => ({
    path: `/guardrails/${guardrailId}/assignments/members`,
    body: { member_user_ids: [userId] },
  }),
  unassignMembers: ({ guardrailId, userId }) => ({
    path: `/guardrails/${guardrailId}/assignments/members/remove`,
    body: { member_user_ids: [userId] },
  }),
  deleteGuardrail: ({ guardrailId }) => ({ path: `/guardrails/${guardrailId}` }),
  createBYOKKey: () => ({ path: '/byok', body: { provider: 'openai', key: 'key-of-a-customer' } }),
  updateBYOKKey: ({ byokCredentialId }) => ({ path: `/byok/${byokCredentialId}`, body: { name: 'renamed' } }),
  deleteBYOKKey: ({ byokCredentialId }) => ({ path: `/byok/${byokCredentialId}` }),
  createObservabilityDestination: () => ({
    path: '/observability/destinations',
    body: { name: 'made', type: 'webhook', config: { url: 'https://hooks.example/' }, enabled: false },
  }),
  updateObservabilityDestination: ({ destinationId }) => ({
    path: `/observability/destinations/${destinationId}`,
    body: { privacy_mode: true, config: { url: 'https://other.example/' } },
  }),
  deleteObservabilityDestination: ({ destinationId }) => ({ path: `/observability/destinations/${destinationId}` }),
  createScimUser: () => ({ path: '/Users', body: { userName: 'made' } }),
  replaceScimUser: ({ scimUserId }) => ({ path: `/Users/${scimUserId}`, body: { userName: 'replaced' } }),
  patchScimUser: ({ scimUserId }) => ({
    path: `/Users/${scimUserId}`,
    body: { Operations: [{ op: 'replace', path: 'displayName', value: 'Patched' }] },
  }),
  createScimGroup: () => ({ path: '/Groups', body: { displayName: 'made' } }),
  replaceScimGroup: ({ scimGroupId, scimUserId }) => ({
    path: `/Groups/${scimGroupId}`,
    body: { displayName: 'replaced', members: [{ value: scimUserId }] },
  }),
  patchScimGroup: ({ scimGroupId, scimUserId }) => ({
    path: `/Groups/${scimGroupId}`,
    body: { Operations: [{ op: 'remove', path: `members[value eq "${scimUserId}"]` }] },
  }),
  createScimGroupMapping: ({ scimGroupId, workspaceId }) => ({
    path: '/scim/group-mappings',
    body: { scim_group_id: scimGroupId, workspace_id: workspaceId, role: 'member' },
  }),
  updateScimGroupMapping: ({ mappingId }) => ({ path: `/scim/group-mappings/${mappingId}`, body: { role: 'admin' } }),
  deleteScimGroupMapping: ({ mappingId }) => ({ path: `/scim/group-mappings/${mappingId}?keep_members=false` }),
  createScimSyncJob: () => ({ path: '/scim/sync-jobs', body: {} }),
  deleteScimGroup: ({ scimGroupId }) => ({ path: `/Groups/${scimGroupId}` }),
  deleteScimUser: ({ scimUserId }) => ({ path: `/Users/${scimUserId}` }),
  deleteWorkspace: ({ workspaceId }) => ({ path: `/workspaces/${workspaceId}` }),
  deleteKey: ({ hash }) => ({ path: `/keys/${hash}` }),
};

/** Whose second call finds all as it asks for it. The others make something each time, or find nothing any more. */
const REPEATABLE = new Set([
  'updateKey',
  'updateWorkspace',
  'removeWorkspaceMembers',
  'addWorkspaceMembers',
  'upsertWorkspaceBudget',
  'deleteWorkspaceBudget',
  'updateGuardrail',
  'assignKeys',
  'unassignKeys',
  'assignMembers',
  'unassignMembers',
  'updateBYOKKey',
  'updateObservabilityDestination',
  'replaceScimUser',
  'patchScimUser',
  'replaceScimGroup',
  'patchScimGroup',
  'updateScimGroupMapping',
]);

/** Only the contracts are read; nothing is called. */
const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);
const changing = new Map(contracts.filter(({ method }) => method !== 'GET').map((each) => [each.id, each]));

test('every operation that is not a GET is listed here with its change, or why it has none', () => {
  const told = [...Object.keys(CALLS), ...Object.keys(EXCEPTIONS)];
  assert.deepEqual(
    [...changing.keys()].filter((id) => !told.includes(id)),
    [],
    'these are neither called here nor excepted',
  );
});

test('every change of the control plane is in the audit log, with its author and address', async (t) => {
  const directory = await startDirectory(t, { yaml: { trusted_proxies: ['127.0.0.1'] } });
  const { control, gateway, token } = directory;
  const known: Known = {
    hash: (await control.keyIn(undefined, 'kept')).hash,
    rotatedHash: (await control.keyIn(undefined, 'rotated')).hash,
    userId: (await control.call('GET', '/key')).body.data.creator_user_id,
    workspaceId: (await control.made({ name: 'kept', slug: 'kept' })).id,
    guardrailId: (await control.call('POST', '/guardrails', { name: 'kept' })).body.data.id,
    scimUserId: (await directory.user('kept')).id,
    scimGroupId: (await directory.group('kept')).id,
    mappingId: '',
    byokCredentialId: '',
    destinationId: '',
  };
  const ask = async ({ method, root }: Operation, { path, body }: Call) => {
    const response = await fetch(root ? `${gateway.url}/scim/v2${path}` : gateway.api + path, {
      method,
      headers: {
        authorization: `Bearer ${root ? token : MANAGEMENT_KEY}`,
        'content-type': root ? 'application/scim+json' : 'application/json',
        'x-forwarded-for': '192.0.2.7',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${text}`);
    return { requestId: response.headers.get('x-request-id'), answer: text === '' ? undefined : JSON.parse(text) };
  };
  for (const [id, call] of Object.entries(CALLS)) {
    const operation = changing.get(id);
    assert.ok(operation, `there is no operation ${id}`);
    const { requestId, answer } = await ask(operation, call(known));
    if (id === 'createScimGroupMapping') known.mappingId = answer.data.id;
    if (id === 'createObservabilityDestination') known.destinationId = answer.data.id;
    if (id === 'createBYOKKey') known.byokCredentialId = answer.data.id;
    const { body } = await control.call('GET', '/audit?limit=100');
    const entries = (body.data as Json[]).filter((entry) => entry.request_id === requestId);
    assert.ok(entries.length > 0, `${id} changed something without an entry`);
    for (const entry of entries) {
      assert.equal(entry.actor.type, operation.access === SCIM ? 'scim' : 'key', id);
      assert.match(entry.actor.key_hash, /^[0-9a-f]{64}$/, id);
      assert.equal(entry.source_address, '192.0.2.7', id);
    }
    if (!REPEATABLE.has(id)) continue;
    const again = await ask(operation, call(known));
    const later: Json[] = (await control.call('GET', '/audit?limit=100')).body.data;
    assert.deepEqual(
      later.filter((entry) => entry.request_id === again.requestId),
      [],
      `${id} entered a change that was none`,
    );
  }
});
