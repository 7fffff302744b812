/**
 * The schemas of the Kubernetes API: types, enumerations and required members from one package, the names of all members from the
 * official client, whose models list them. Both are generated from the API's own description.
 */
import * as client from '@kubernetes/client-node';

export interface AnyObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
    creationTimestamp?: string;
    ownerReferences?: { name: string; uid: string }[];
  };
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind
  [member: string]: any;
}

interface Attribute {
  baseName: string;
  type: string;
}

type Model = { getAttributeTypeMap?(): Attribute[] };
const models = client as unknown as Record<string, Model | undefined>;

/** Groups as the schemas' files name them. */
const GROUPS: Readonly<Record<string, string>> = {
  v1: 'CoreV1',
  'apps/v1': 'AppsV1',
  'coordination.k8s.io/v1': 'CoordinationV1',
  'networking.k8s.io/v1': 'NetworkingV1',
  'node.k8s.io/v1': 'NodeV1',
  'policy/v1': 'PolicyV1',
  'rbac.authorization.k8s.io/v1': 'RbacV1',
};

/** The custom resource of the agent-sandbox project, v1beta1, by the types of the API. */
const SANDBOX: Readonly<Record<string, string>> = {
  podTemplate: 'V1PodTemplateSpec',
  volumeClaimTemplates: 'Array<ClaimTemplate>',
  service: 'boolean',
  operatingMode: 'string',
  shutdownTime: 'string',
  shutdownPolicy: 'string',
};
const OWN: Readonly<Record<string, Attribute[]>> = {
  ClaimTemplate: [
    { baseName: 'metadata', type: 'EmbeddedMetadata' },
    { baseName: 'spec', type: 'V1PersistentVolumeClaimSpec' },
  ],
  EmbeddedMetadata: [
    { baseName: 'name', type: 'string' },
    { baseName: 'labels', type: '{ [key: string]: string; }' },
    { baseName: 'annotations', type: '{ [key: string]: string; }' },
  ],
  SandboxSpec: Object.entries(SANDBOX).map(([baseName, type]) => ({ baseName, type })),
  V1Sandbox: [
    { baseName: 'apiVersion', type: 'string' },
    { baseName: 'kind', type: 'string' },
    { baseName: 'metadata', type: 'V1ObjectMeta' },
    { baseName: 'spec', type: 'SandboxSpec' },
    { baseName: 'status', type: 'any' },
  ],
};

/** @returns what is wrong, with paths */
export async function problemsOf(object: AnyObject): Promise<string[]> {
  const problems: string[] = [];
  walk(object, `V1${object.kind}`, '', problems);
  if (object.apiVersion === 'agents.x-k8s.io/v1beta1' && object.kind === 'Sandbox') problems.push(...sandbox(object));
  else problems.push(...(await validated(object)));
  return problems;
}

async function validated(object: AnyObject): Promise<string[]> {
  const group = GROUPS[object.apiVersion];
  if (group === undefined) return [`apiVersion: ${object.apiVersion} is not known`];
  const { validate } = (await import(`kubernetes-models/_schemas/IoK8sApi${group}${object.kind}`)) as {
    validate: { (data: unknown): boolean; errors?: { instancePath: string; params: unknown; keyword: string }[] };
  };
  if (validate(object)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, keyword, params }) => `${instancePath}: ${keyword} ${JSON.stringify(params)}`,
  );
}

function sandbox({ spec }: AnyObject): string[] {
  const wrong: string[] = [];
  if (!Array.isArray(spec?.podTemplate?.spec?.containers)) wrong.push('/spec/podTemplate/spec/containers: required');
  if (!['Running', 'Suspended', undefined].includes(spec?.operatingMode)) wrong.push('/spec/operatingMode: enum');
  return wrong;
}

function walk(value: unknown, type: string, path: string, problems: string[]): void {
  if (value === undefined || value === null) return;
  const [, items] = /^Array<(.+)>$/.exec(type) ?? [];
  if (items !== undefined) {
    if (!Array.isArray(value)) problems.push(`${path}: must be a list`);
    else for (const [index, each] of value.entries()) walk(each, items, `${path}/${index}`, problems);
    return;
  }
  const attributes = OWN[type] ?? models[type]?.getAttributeTypeMap?.();
  if (attributes === undefined) return void scalar(value, type, path, problems);
  if (typeof value !== 'object' || Array.isArray(value)) {
    problems.push(`${path}: must be an object`);
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    const attribute = attributes.find(({ baseName }) => baseName === name);
    if (attribute === undefined) problems.push(`${path}/${name}: unknown field`);
    else walk(member, attribute.type, `${path}/${name}`, problems);
  }
}

function scalar(value: unknown, type: string, path: string, problems: string[]): void {
  const expected = { string: 'string', number: 'number', boolean: 'boolean', Date: 'string', V1MicroTime: 'string' }[
    type
  ];
  if (expected !== undefined && typeof value !== expected) problems.push(`${path}: must be a ${expected}`);
}
