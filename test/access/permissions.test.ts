/**
 * There is no way around authentication: walks every operation of the service with every kind of caller. An operation
 * that is missing here fails.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Region } from '../../src/http/access-rule.ts';
import type { Operation } from '../../src/http/operation.ts';
import { operations } from '../../src/operations.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { scimToken } from '../scim/directory.ts';
import { controlOf } from '../workspaces/control.ts';

/** What else decides whether a caller may call an operation. */
interface Conditions {
  programme?: string;
  scope?: string;
  /** Roots that serve it; others answer 403. Default: all serve it, with the same answers. */
  regions?: readonly Region[];
}

/** What an operation answers after authentication: the status for each kind of key. */
interface Expectation extends Conditions {
  inference: number;
  management: number;
  /** Default 403. */
  scim?: number;
  /** Values for the path's parameters and the query, given the hash of a key that may be changed. */
  path?: (hash: string) => string;
  body?: unknown;
}

/** What an operation answers to everybody, whatever key they bring. */
interface Open extends Conditions {
  anybody: number;
  path?: () => string;
  body?: unknown;
}

const AUDIO = { model: 'simulated/echo', input_audio: { data: 'AAAA', format: 'wav' } };
const conversation = { model: 'simulated/echo', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] };
const content = (path: string) => ({
  ...{ inference: 200, management: 403, path: () => path },
  body: { contents: [{ parts: [{ text: 'hi' }] }] },
});

const NO_GUARDRAIL = '/guardrails/00000000-0000-7000-8000-000000000000';

function assignmentsOf(noun: string, body: unknown): Record<string, Expectation> {
  const path = `${NO_GUARDRAIL}/assignments/${noun.toLowerCase()}`;
  return {
    [`assign${noun}`]: { inference: 403, management: 404, path: () => path, body },
    [`unassign${noun}`]: { inference: 403, management: 404, path: () => `${path}/remove`, body },
  };
}

/** Of an identity provider alone. */
const scimOnly = (scim: number, path?: string, body?: unknown): Expectation => ({
  ...{ inference: 403, management: 403, scim, body },
  ...(path !== undefined && { path: () => `/scim/v2${path}` }),
});

const NO_GROUP = '00000000-0000-7000-8000-000000000000';

const SCIM: Record<string, Expectation> = {
  getScimServiceProviderConfig: scimOnly(200),
  listScimResourceTypes: scimOnly(200),
  getScimResourceType: scimOnly(200, '/ResourceTypes/User'),
  listScimSchemas: scimOnly(200),
  getScimSchema: scimOnly(404, '/Schemas/none'),
  scimMeGet: scimOnly(501),
  scimMePost: scimOnly(501),
  scimMePut: scimOnly(501),
  scimMePatch: scimOnly(501),
  scimMeDelete: scimOnly(501),
  scimBulk: scimOnly(501),
  scimSearch: scimOnly(400),
  listScimUsers: scimOnly(200),
  searchScimUsers: scimOnly(200, undefined, {}),
  createScimUser: scimOnly(201, undefined, { userName: 'made' }),
  getScimUser: scimOnly(404, '/Users/none'),
  replaceScimUser: scimOnly(404, '/Users/none', { userName: 'made' }),
  patchScimUser: scimOnly(404, '/Users/none', {}),
  deleteScimUser: scimOnly(404, '/Users/none'),
  listScimProtocolGroups: scimOnly(200),
  searchScimGroups: scimOnly(200, undefined, {}),
  createScimGroup: scimOnly(201, undefined, { displayName: 'made' }),
  getScimGroup: scimOnly(404, '/Groups/none'),
  replaceScimGroup: scimOnly(404, '/Groups/none', { displayName: 'made' }),
  patchScimGroup: scimOnly(404, '/Groups/none', {}),
  deleteScimGroup: scimOnly(404, '/Groups/none'),
  listScimGroups: { inference: 403, management: 200 },
  listScimGroupMappings: { inference: 403, management: 200 },
  createScimGroupMapping: {
    inference: 403,
    management: 404,
    body: { scim_group_id: NO_GROUP, workspace_id: NO_GROUP, role: 'member' },
  },
  getScimGroupMapping: { inference: 403, management: 404, path: () => '/scim/group-mappings/none' },
  updateScimGroupMapping: { inference: 403, management: 404, path: () => '/scim/group-mappings/none', body: {} },
  createScimSyncJob: { inference: 403, management: 202 },
  getScimSyncJob: { inference: 403, management: 404, path: () => '/scim/sync-jobs/none' },
  deleteScimGroupMapping: {
    inference: 403,
    management: 404,
    path: () => '/scim/group-mappings/none?keep_members=true',
  },
};

/** Regional roots refuse it. */
const GLOBAL = { regions: ['global'] } as const;
/** Hidden from keys outside of the programme. */
const INTERNS = { ...GLOBAL, programme: 'interns' } as const;

/** Of one intern, which does not exist. */
/** Keys of other kinds are unknown on the routes of interns. */
const OTHERS_UNKNOWN = { management: 401, scim: 401 } as const;
const NO_INTERN = { ...INTERNS, scope: 'intern', inference: 404, management: 403 } as const;

const EXPECTED: Record<string, Expectation | Open> = {
  ...SCIM,
  getHealth: { anybody: 200 },
  getReadiness: { anybody: 200 },
  getRoot: { anybody: 200 },
  getStartPage: { anybody: 200 },
  openConsole: { anybody: 302 },
  // The sources run without having been built.
  getConsole: { anybody: 404 },
  getConsoleFile: { anybody: 404, path: () => '/console/none.js' },
  getConsoleSession: { anybody: 200 },
  createConsoleSession: { anybody: 401, body: { key: 'unknown' } },
  beginConsoleOidcSignIn: { anybody: 404 },
  finishConsoleOidcSignIn: { anybody: 302 },
  deleteConsoleSession: { anybody: 401 },
  setConsoleInferenceKey: { anybody: 401, body: { key: null } },
  getReference: { anybody: 200 },
  getOpenApi: { anybody: 200 },
  showConsent: { anybody: 200, path: () => '/auth?callback_url=http://localhost/' },
  // Not the form of the page: what it takes is shown in test/sign-in/oauth.test.ts.
  takeConsent: { anybody: 415, body: {} },
  exchangeAuthCodeForAPIKey: { anybody: 403, body: { code: 'unknown' } },
  // Not a form: what it takes is shown in test/sign-in/federation/.
  createOauthToken: { anybody: 415, body: {} },
  listOauthJwks: { anybody: 200 },
  createAuthKeysCode: { inference: 403, management: 200, body: { callback_url: 'http://localhost/' } },
  getMetrics: { inference: 403, management: 200 },
  getActivity: { inference: 403, management: 200 },
  listAuditEntries: { inference: 403, management: 200 },
  listGenerations: { inference: 403, management: 200 },
  listSystemFindings: { inference: 403, management: 200 },
  listSystemProcesses: { inference: 403, management: 200 },
  testGuardrail: { inference: 403, management: 404, path: () => `${NO_GUARDRAIL}/test`, body: { text: 'x' } },
  getAnalyticsMeta: { inference: 403, management: 200 },
  queryAnalytics: { inference: 403, management: 200, body: { metrics: ['request_count'] } },
  getCurrentKey: { inference: 200, management: 200 },
  listKeys: { inference: 403, management: 200 },
  createKey: { inference: 403, management: 201, body: { name: 'made' } },
  getKey: { inference: 403, management: 200, path: (hash) => `/keys/${hash}` },
  updateKey: { inference: 403, management: 200, path: (hash) => `/keys/${hash}`, body: {} },
  rotateKey: {
    inference: 403,
    management: 201,
    path: (hash) => `/keys/${hash}/rotate`,
    body: { revoke_previous_after_seconds: 0 },
  },
  listMemories: { inference: 403, management: 200 },
  getMemory: { inference: 403, management: 404, path: () => '/memories/none' },
  deleteMemory: { inference: 403, management: 404, path: () => '/memories/none' },
  listBYOKKeys: { inference: 403, management: 200 },
  createBYOKKey: { inference: 403, management: 201, body: { provider: 'openai', key: 'key-of-a-customer' } },
  getBYOKKey: { inference: 403, management: 404, path: () => '/byok/none' },
  updateBYOKKey: { inference: 403, management: 404, path: () => '/byok/none', body: {} },
  listObservabilityDestinations: { inference: 403, management: 200 },
  createObservabilityDestination: {
    inference: 403,
    management: 201,
    body: { name: 'made', type: 'webhook', config: { url: 'https://hooks.example/' }, enabled: false },
  },
  getObservabilityDestination: { inference: 403, management: 404, path: () => '/observability/destinations/none' },
  updateObservabilityDestination: {
    inference: 403,
    management: 404,
    path: () => '/observability/destinations/none',
    body: {},
  },
  testObservabilityDestination: {
    inference: 403,
    management: 404,
    path: () => '/observability/destinations/none/test',
  },
  deleteObservabilityDestination: { inference: 403, management: 404, path: () => '/observability/destinations/none' },
  createBatch: { inference: 400, management: 403, body: {} },
  listBatches: { inference: 200, management: 403 },
  getBatch: { inference: 404, management: 403, path: () => '/batches/none' },
  getBatchResults: { inference: 404, management: 403, path: () => '/batches/none/results' },
  cancelBatch: { inference: 404, management: 403, path: () => '/batches/none/cancel' },
  deleteBatch: { inference: 404, management: 403, path: () => '/batches/none' },
  createMessageBatch: { inference: 400, management: 403, body: {} },
  listMessageBatches: { inference: 200, management: 403 },
  getMessageBatch: { inference: 404, management: 403, path: () => '/messages/batches/none' },
  getMessageBatchResults: { inference: 404, management: 403, path: () => '/messages/batches/none/results' },
  cancelMessageBatch: { inference: 404, management: 403, path: () => '/messages/batches/none/cancel' },
  deleteMessageBatch: { inference: 404, management: 403, path: () => '/messages/batches/none' },
  getBatchCallback: { inference: 404, management: 403, path: () => '/batches/none/callback' },
  getBatchCallbackSecret: { inference: 200, management: 403 },
  rotateBatchCallbackSecret: { inference: 200, management: 403 },
  listVaultSecrets: { ...INTERNS, scope: 'interns', inference: 200, management: 403 },
  storeVaultSecret: {
    ...{ ...INTERNS, scope: 'interns', inference: 200, management: 403, path: () => '/vault/secrets/made' },
    body: { value: 'v', hosts: ['api.test'] },
  },
  deleteVaultSecret: {
    ...{ ...INTERNS, scope: 'interns', inference: 404, management: 403, path: () => '/vault/secrets/none' },
  },
  listInternVaultSecrets: { ...NO_INTERN, path: () => '/vault/interns/none/secrets' },
  listEffectiveVaultSecrets: { ...NO_INTERN, path: () => '/vault/interns/none/effective-secrets' },
  storeInternVaultSecret: {
    ...{ ...NO_INTERN, path: () => '/vault/interns/none/secrets/made' },
    body: { value: 'v', hosts: ['api.test'] },
  },
  deleteInternVaultSecret: { ...NO_INTERN, path: () => '/vault/interns/none/secrets/none' },
  copyVaultSecretsToIntern: { ...NO_INTERN, path: () => '/vault/interns/none/secrets/copy', body: { names: ['none'] } },
  listInterns: { ...INTERNS, scope: 'interns', inference: 200, ...OTHERS_UNKNOWN },
  createIntern: { ...INTERNS, scope: 'interns', inference: 201, ...OTHERS_UNKNOWN, body: { name: 'made' } },
  getIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none' },
  updateIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none', body: {} },
  deleteIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none' },
  provisionIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none/provision' },
  createInternChatCompletion: {
    ...{ ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none/chat/completions' },
    body: { messages: [{ role: 'user', content: 'hi' }], stream: true },
  },
  invokeIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none/invoke', body: { input: 'hi' } },
  suspendIntern: { ...NO_INTERN, ...OTHERS_UNKNOWN, path: () => '/interns/none/suspend' },
  listFiles: { ...GLOBAL, inference: 200, management: 200 },
  // What a form must hold is asked once the key is known.
  uploadFile: { ...GLOBAL, inference: 415, management: 415, body: {} },
  getFile: { ...GLOBAL, inference: 404, management: 404, path: () => '/files/none' },
  downloadFile: { ...GLOBAL, inference: 404, management: 404, path: () => '/files/none/content' },
  deleteFile: { ...GLOBAL, inference: 404, management: 404, path: () => '/files/none' },
  // The headers of the protocol are asked for once the key is known.
  startGoogleFileUpload: { ...GLOBAL, inference: 400, management: 400 },
  startGoogleFileUploadBeta: { ...GLOBAL, inference: 400, management: 400 },
  continueGoogleFileUpload: { ...GLOBAL, anybody: 404, path: () => '/upload/v1beta/files/none' },
  listGoogleFiles: { ...GLOBAL, inference: 200, management: 200 },
  getGoogleFile: { ...GLOBAL, inference: 404, management: 404, path: () => '/v1beta/files/none' },
  deleteGoogleFile: { ...GLOBAL, inference: 404, management: 404, path: () => '/v1beta/files/none' },
  listContainerFiles: { inference: 200, management: 403, path: () => '/containers/none/files' },
  getContainerFile: { inference: 404, management: 403, path: () => '/containers/none/files/none' },
  downloadContainerFile: { inference: 404, management: 403, path: () => '/containers/none/files/none/content' },
  promoteContainerFile: { inference: 404, management: 403, path: () => '/containers/none/files/none/promote' },
  deleteBYOKKey: { inference: 403, management: 404, path: () => '/byok/none' },
  listOrganizationMembers: { inference: 403, management: 200 },
  deleteKey: { inference: 403, management: 200, path: (hash) => `/keys/${hash}` },
  listWorkspaces: { inference: 403, management: 200 },
  createWorkspace: { inference: 403, management: 201, body: { name: 'made', slug: 'made' } },
  getWorkspace: { inference: 403, management: 200, path: () => '/workspaces/kept' },
  updateWorkspace: { inference: 403, management: 200, path: () => '/workspaces/kept', body: {} },
  deleteWorkspace: { inference: 403, management: 200, path: () => '/workspaces/to-be-deleted' },
  listWorkspaceMembers: { inference: 403, management: 200, path: () => '/workspaces/kept/members' },
  addWorkspaceMembers: {
    inference: 403,
    management: 400,
    path: () => '/workspaces/kept/members/add',
    body: { user_ids: ['user_nobody'] },
  },
  removeWorkspaceMembers: {
    inference: 403,
    management: 200,
    path: () => '/workspaces/kept/members/remove',
    body: { user_ids: ['user_nobody'] },
  },
  listWorkspaceBudgets: { inference: 403, management: 200, path: () => '/workspaces/kept/budgets' },
  upsertWorkspaceBudget: {
    inference: 403,
    management: 200,
    path: () => '/workspaces/kept/budgets/daily',
    body: { limit_usd: 1 },
  },
  getWorkspaceBudget: { inference: 403, management: 404, path: () => '/workspaces/kept/budgets/daily' },
  deleteWorkspaceBudget: { inference: 403, management: 200, path: () => '/workspaces/kept/budgets/weekly' },
  listGuardrails: { inference: 403, management: 200 },
  createSystemOne: {
    ...{ inference: 200, management: 403 },
    body: { model: 'simulated/echo', state: 'x', questions: { q: { type: 'noul', instructions: 'Is it?' } } },
  },
  createDecision: {
    ...{ inference: 200, management: 403 },
    body: { model: 'simulated/echo', state: 'x', questions: { q: { type: 'noul', instructions: 'Is it?' } } },
  },
  getRankingsDaily: { inference: 200, management: 200 },
  getAppRankings: { inference: 200, management: 200 },
  getSessionCost: { inference: 200, management: 200 },
  getBenchmarks: { inference: 404, management: 404 },
  getTaskClassifications: { inference: 404, management: 404 },
  listPresets: { inference: 200, management: 200 },
  getPreset: { inference: 404, management: 404, path: () => '/presets/none' },
  listPresetVersions: { inference: 404, management: 404, path: () => '/presets/none/versions' },
  getPresetVersion: { inference: 404, management: 404, path: () => '/presets/none/versions/1' },
  createPresetsChatCompletions: {
    ...{ inference: 200, management: 200, path: () => '/presets/made/chat/completions' },
    body: { temperature: 0 },
  },
  createPresetsMessages: {
    ...{ inference: 200, management: 200, path: () => '/presets/made/messages' },
    body: { temperature: 0 },
  },
  createPresetsResponses: {
    ...{ inference: 200, management: 200, path: () => '/presets/made/responses' },
    body: { temperature: 0 },
  },
  deletePreset: { inference: 403, management: 404, path: () => '/presets/none' },
  createGuardrail: { inference: 403, management: 201, body: { name: 'made' } },
  getGuardrail: { inference: 403, management: 404, path: () => NO_GUARDRAIL },
  updateGuardrail: { inference: 403, management: 404, path: () => NO_GUARDRAIL, body: {} },
  deleteGuardrail: { inference: 403, management: 404, path: () => NO_GUARDRAIL },
  listKeyAssignments: { inference: 403, management: 200 },
  listMemberAssignments: { inference: 403, management: 200 },
  listGuardrailKeyAssignments: { inference: 403, management: 404, path: () => `${NO_GUARDRAIL}/assignments/keys` },
  listGuardrailMemberAssignments: {
    inference: 403,
    management: 404,
    path: () => `${NO_GUARDRAIL}/assignments/members`,
  },
  ...assignmentsOf('Keys', { key_hashes: ['f'.repeat(64)] }),
  ...assignmentsOf('Members', { member_user_ids: ['user_nobody'] }),
  listBudgets: { inference: 200, management: 200 },
  getCredits: { inference: 403, management: 200 },
  listModels: { inference: 200, management: 200 },
  countModels: { inference: 200, management: 200 },
  listUserModels: { inference: 200, management: 200 },
  listEmbeddingModels: { inference: 200, management: 200 },
  getModel: { inference: 200, management: 200, path: () => '/model/simulated/echo' },
  retrieveModel: { inference: 200, management: 200, path: () => '/models/simulated%2Fecho' },
  listModelsForGoogle: { inference: 200, management: 200 },
  getModelForGoogle: { inference: 200, management: 200, path: () => '/v1beta/models/simulated%2Fecho' },
  getModelOfAuthorForGoogle: { inference: 200, management: 200, path: () => '/models/simulated/echo' },
  getModelOfAuthorForGoogleBeta: { inference: 200, management: 200, path: () => '/v1beta/models/simulated/echo' },
  listZdrEndpoints: { inference: 200, management: 200 },
  listProviders: { inference: 200, management: 200 },
  listEndpoints: { inference: 200, management: 200, path: () => '/models/simulated/echo/endpoints' },
  createChatCompletion: { inference: 200, management: 403, body: conversation },
  createMessage: { inference: 200, management: 403, body: conversation },
  createResponse: { inference: 200, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  getResponse: { inference: 404, management: 403, path: () => '/responses/none' },
  listResponseInputItems: { inference: 404, management: 403, path: () => '/responses/none/input_items' },
  listVectorStores: { ...GLOBAL, inference: 200, management: 403 },
  createVectorStore: { ...GLOBAL, inference: 200, management: 403, body: {} },
  getVectorStore: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none' },
  updateVectorStore: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none', body: {} },
  deleteVectorStore: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none' },
  searchVectorStore: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/search',
    body: { query: 'x' },
  },
  createVectorStoreFile: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/files',
    body: { file_id: 'none' },
  },
  listVectorStoreFiles: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none/files' },
  getVectorStoreFile: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none/files/none' },
  updateVectorStoreFile: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/files/none',
    body: { attributes: {} },
  },
  deleteVectorStoreFile: { ...GLOBAL, inference: 404, management: 403, path: () => '/vector_stores/none/files/none' },
  getVectorStoreFileContent: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/files/none/content',
  },
  createVectorStoreFileBatch: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/file_batches',
    body: { file_ids: ['none'] },
  },
  getVectorStoreFileBatch: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/file_batches/none',
  },
  cancelVectorStoreFileBatch: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/file_batches/none/cancel',
  },
  listVectorStoreBatchFiles: {
    ...GLOBAL,
    inference: 404,
    management: 403,
    path: () => '/vector_stores/none/file_batches/none/files',
  },
  createConversation: { inference: 200, management: 403, body: {} },
  getConversation: { inference: 404, management: 403, path: () => '/conversations/none' },
  updateConversation: { inference: 404, management: 403, path: () => '/conversations/none', body: { metadata: {} } },
  deleteConversation: { inference: 404, management: 403, path: () => '/conversations/none' },
  createConversationItems: {
    ...{ inference: 404, management: 403, path: () => '/conversations/none/items' },
    body: { items: [{ role: 'user', content: 'hi' }] },
  },
  listConversationItems: { inference: 404, management: 403, path: () => '/conversations/none/items' },
  getConversationItem: { inference: 404, management: 403, path: () => '/conversations/none/items/none' },
  deleteConversationItem: { inference: 404, management: 403, path: () => '/conversations/none/items/none' },
  compactResponse: { inference: 200, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  countResponseTokens: { inference: 200, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  cancelResponse: { inference: 404, management: 403, path: () => '/responses/none/cancel' },
  deleteResponse: { inference: 404, management: 403, path: () => '/responses/none' },
  generateContent: content('/models/simulated%2Fecho:generateContent'),
  generateContentOfAuthor: content('/models/simulated/echo:streamGenerateContent'),
  generateContentBeta: content('/v1beta/models/simulated%2Fecho:generateContent'),
  generateContentOfAuthorBeta: content('/v1beta/models/simulated/echo:streamGenerateContent?alt=sse'),
  createCompletion: { inference: 200, management: 403, body: { model: 'simulated/echo', prompt: 'hi' } },
  countMessageTokens: { inference: 200, management: 403, body: conversation },
  createEmbeddings: { inference: 400, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  rerank: { inference: 400, management: 403, body: { model: 'simulated/echo', query: 'q', documents: ['d'] } },
  createImage: { inference: 400, management: 403, body: { model: 'simulated/echo', prompt: 'p' } },
  createTranscription: { inference: 400, management: 403, body: AUDIO },
  createTranslation: { inference: 400, management: 403, body: AUDIO },
  createModeration: { inference: 400, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  editImage: { inference: 400, management: 403, body: { model: 'simulated/echo', prompt: 'p' } },
  varyImage: { inference: 400, management: 403, body: { model: 'simulated/echo', prompt: 'p' } },
  createVideo: { inference: 400, management: 403, body: { model: 'simulated/echo', prompt: 'p' } },
  remixVideo: { path: () => '/videos/vid_none/remix', inference: 404, management: 403, body: { prompt: 'p' } },
  listVideos: { inference: 200, management: 403 },
  deleteVideo: { path: () => '/videos/vid_none', inference: 404, management: 403 },
  getVideo: { path: () => '/videos/vid_none', inference: 404, management: 403 },
  getVideoContent: { path: () => '/videos/vid_none/content', inference: 404, management: 403 },
  listVideoModels: { inference: 200, management: 200 },
  createSpeech: { inference: 400, management: 403, body: { model: 'simulated/echo', input: 'hi' } },
  createImageGeneration: { inference: 400, management: 403, body: { model: 'simulated/echo', prompt: 'p' } },
  listImageModels: { inference: 200, management: 200 },
  listImageModelEndpoints: {
    inference: 404,
    management: 404,
    path: () => '/images/models/simulated/echo/endpoints',
  },
  getGenerationContent: { inference: 404, management: 404, path: () => `/generation/content?id=gen-${'0'.repeat(32)}` },
  submitGenerationFeedback: {
    inference: 403,
    management: 404,
    body: { generation_id: `gen-${'0'.repeat(32)}`, category: 'other' },
  },
  getGeneration: { inference: 404, management: 404, path: () => `/generation?id=gen-${'0'.repeat(32)}` },
};

/** Only the contracts are read; nothing is called. */
const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);

interface Asked {
  method: string;
  path: string;
  token?: string;
  /** Default: that of the URL. */
  host?: string;
  body?: unknown;
}

const agent = new http.Agent({ keepAlive: true });

/** The path is sent unchanged; `fetch` would normalize it. */
function ask(url: string, { method, path, token, host, body }: Asked): Promise<{ status: number; text: string }> {
  const headers = {
    'content-type': 'application/json',
    ...(host !== undefined && { host }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, path, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const EUROPE = 'eu.gate.test';

interface Installation {
  url: string;
  /** Makes an inference key. */
  make(body: Record<string, unknown>): Promise<{ token: string; hash: string }>;
  /** Of an identity provider. */
  scim: string;
  disabled: string;
  expired: string;
  /** The key of a former member. */
  orphan: string;
  /** An inference key of a workspace in no programme. */
  outsider: string;
}

async function installation(t: TestContext): Promise<Installation> {
  const gateway = await startGateway(t, { yaml: { hosts: { europe: [EUROPE] } } });
  const make: Installation['make'] = async (body) => {
    const path = '/api/v1/keys';
    const { status, text } = await ask(gateway.url, { method: 'POST', path, token: MANAGEMENT_KEY, body });
    assert.equal(status, 201, text);
    const { key, data } = JSON.parse(text) as { key: string; data: { hash: string } };
    return { token: key, hash: data.hash };
  };
  const workspace = async (slug: string) => {
    const request = { method: 'POST', path: '/api/v1/workspaces', token: MANAGEMENT_KEY, body: { name: slug, slug } };
    return (JSON.parse((await ask(gateway.url, request)).text) as { data: { id: string } }).data.id;
  };
  const { body: listed } = await controlOf(gateway).call('GET', '/workspaces');
  const workspaces = (listed.data as { id: string }[]).map(({ id }) => id);
  gateway.app.reload({ ...gateway.config, internProgramme: { everyone: false, workspaces, keys: [] } });
  const { token: outsider } = await make({ name: 'outsider', workspace_id: await workspace('kept') });
  await workspace('to-be-deleted');
  const disabled = await make({ name: 'disabled' });
  const path = `/api/v1/keys/${disabled.hash}`;
  await ask(gateway.url, { method: 'PATCH', path, token: MANAGEMENT_KEY, body: { disabled: true } });
  const expires_at = new Date(gateway.clock.now() + 60_000).toISOString();
  const expired = await make({ name: 'expired', expires_at });
  const orphan = await make({ name: 'orphan' });
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
  await database.query(`insert into users (id, name, created_at) values ('user_gone', 'Gone', now())`);
  const changed = `update api_keys set creator_user_id = 'user_gone' where hash = $1`;
  await database.query(changed, [orphan.hash]);
  await database.query(`update api_keys set expires_at = now() - interval '1 day' where hash = $1`, [expired.hash]);
  await database.close();
  const scim = await scimToken(gateway.target);
  return {
    url: gateway.url,
    make,
    scim,
    outsider,
    disabled: disabled.token,
    expired: expired.token,
    orphan: orphan.token,
  };
}

function pathOf(operation: Operation, hash: string): string {
  const expectation = EXPECTED[operation.id];
  const path = expectation?.path?.(hash) ?? operation.path;
  return operation.root ? path : `/api/v1${path}`;
}

test('access is declared for every operation, and for no other', () => {
  assert.deepEqual(contracts.map(({ id }) => id).toSorted(), Object.keys(EXPECTED).toSorted());
});

test('programme, scope and regions of every operation are those listed here', () => {
  for (const { id, access } of contracts) {
    const { programme, scope, regions }: Conditions = EXPECTED[id] ?? {};
    const declared = { programme: access.programme, scope: access.scope, regions: access.regions };
    assert.deepEqual(declared, { programme, scope, regions }, id);
  }
});

type Caller = [who: string, token: string | undefined, status: number];

for (const [root, host] of [
  ['the global', undefined],
  ['a regional', EUROPE],
] as const) {
  test(`every operation answers each kind of caller as listed here, on ${root} host`, async (t) => {
    const { url, make, scim, disabled, expired, orphan, outsider } = await installation(t);
    for (const [at, operation] of contracts.entries()) {
      const expectation = EXPECTED[operation.id];
      if (expectation === undefined) continue;
      const { body, regions, programme } = expectation;
      const { inference, management, scim: scimStatus = 403 } = expectation as Expectation;
      const elsewhere = host !== undefined && regions?.includes('europe') === false ? 403 : undefined;
      const open = 'anybody' in expectation ? (elsewhere ?? expectation.anybody) : undefined;
      const worthless: Caller[] = [
        ['an unknown key', `sk-svc-v1-${'0'.repeat(64)}`, open ?? 401],
        ['a disabled key', disabled, open ?? 401],
        ['an expired key', expired, open ?? 401],
        ['the key of one who left', orphan, open ?? 403],
      ];
      const callers: Caller[] = [
        ['nobody', undefined, open ?? 401],
        // What they open does not depend on the host: there the operations take turns.
        ...(host === undefined ? worthless : [worthless[at % worthless.length]!]),
        ['an inference key', INFERENCE_KEY, elsewhere ?? open ?? inference],
        // The kind of a key is looked at before the root.
        ['a management key', MANAGEMENT_KEY, management === 401 ? 401 : (elsewhere ?? open ?? management)],
        ['a SCIM token', scim, scimStatus === 401 ? 401 : (elsewhere ?? open ?? scimStatus)],
      ];
      const needsKey = (expectation as Expectation).path?.length === 1;
      if (programme !== undefined) callers.push(['a key outside of the programme', outsider, 404]);
      for (const [who, token, status] of callers) {
        const path = pathOf(operation, needsKey ? (await make({ name: 'to be changed' })).hash : '');
        const asked = { method: operation.method, path, ...(token && { token }), ...(host && { host }), body };
        const answer = await ask(url, asked);
        assert.equal(answer.status, status, `${operation.id} to ${who}: ${answer.text}`);
      }
    }
  });
}

test('no spelling of a path leads past authentication', async (t) => {
  const { url, make } = await installation(t);
  const { hash } = await make({ name: 'to be kept' });
  const guarded = contracts.filter(({ access }) => access.kinds !== 'anyone');
  for (const [at, operation] of guarded.entries()) {
    const path = pathOf(operation, hash);
    const [, , , first = ''] = path.split('/');
    const spellings = [
      path.replace('/api/v1', '/v1'),
      path.replace(first, `%${first.charCodeAt(0).toString(16)}${first.slice(1)}`),
      path.replace('/api/v1', '/api/v1/.'),
      path.replace('/api/v1', '/api/v1/x/..'),
      path.replace('/api/v1', '/api/v1/'),
      path.replace('/api/v1', '//api/v1'),
      path.replace('/api/v1', '/health/../api/v1'),
      path.replace('/api/v1', '/API/V1'),
      path.toUpperCase(),
      `${path}/`,
      `${path}%00`,
      `${path};x`,
      `${path}?`,
      `${path}#x`,
      `${url}${path}`,
    ];
    const { body } = EXPECTED[operation.id] as Expectation;
    // In a run of many files operations take turns with the spellings, so that each is tried with many of them.
    const turns = Math.ceil(spellings.length / samples(spellings.length));
    for (const spelling of spellings.filter((_, index) => (index + at) % turns === 0)) {
      for (const token of [undefined, 'unknown-key']) {
        const answer = await ask(url, { method: operation.method, path: spelling, ...(token && { token }), body });
        assert.ok([400, 401, 404, 405].includes(answer.status), `${operation.method} ${spelling}: ${answer.status}`);
      }
    }
  }
});
