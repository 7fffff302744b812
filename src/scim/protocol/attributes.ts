/** The attributes of users and groups (RFC 7643) as data, used to parse, filter, patch and describe resources. */

export interface Attribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'dateTime' | 'reference' | 'binary' | 'complex';
  readonly multiValued: boolean;
  readonly required: boolean;
  readonly caseExact: boolean;
  readonly mutability: 'readWrite' | 'readOnly' | 'writeOnly';
  readonly returned: 'always' | 'default' | 'never';
  readonly uniqueness: 'none' | 'server';
  readonly description: string;
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly Attribute[];
}

export interface Schema {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly attributes: readonly Attribute[];
}

export interface ResourceType {
  readonly name: 'User' | 'Group';
  readonly endpoint: string;
  readonly description: string;
  readonly schema: Schema;
  readonly extensions: readonly Schema[];
}

type Options = Partial<Omit<Attribute, 'name' | 'description'>>;

function attribute(name: string, description: string, options: Options = {}): Attribute {
  return {
    name,
    type: options.subAttributes ? 'complex' : 'string',
    multiValued: false,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    description,
    ...options,
  };
}

/** A list with the usual sub-attributes (RFC 7643, section 2.4). */
function plural(name: string, description: string, value: Options = {}): Attribute {
  return attribute(name, description, {
    multiValued: true,
    subAttributes: [
      attribute('value', 'The value itself', value),
      attribute('display', 'A display name'),
      attribute('type', 'Purpose, such as work or home'),
      attribute('primary', 'True for the preferred value', { type: 'boolean' }),
    ],
  });
}

const READ_ONLY: Options = { mutability: 'readOnly' };

const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

const ADDRESS: readonly Attribute[] = [
  attribute('formatted', 'The complete address'),
  attribute('streetAddress', 'Street and number'),
  attribute('locality', 'City'),
  attribute('region', 'State or region'),
  attribute('postalCode', 'Postal code'),
  attribute('country', 'Country'),
  attribute('type', 'Purpose, such as work or home'),
  attribute('primary', 'True for the preferred value', { type: 'boolean' }),
];

const NAME: readonly Attribute[] = [
  attribute('formatted', 'The complete name'),
  attribute('familyName', 'Family name'),
  attribute('givenName', 'Given name'),
  attribute('middleName', 'Middle name'),
  attribute('honorificPrefix', 'Title before the name'),
  attribute('honorificSuffix', 'Suffix after the name'),
];

const USER_SCHEMA: Schema = {
  id: 'urn:ietf:params:scim:schemas:core:2.0:User',
  name: 'User',
  description: 'A person',
  attributes: [
    attribute('userName', 'The name that the person signs in with', { required: true, uniqueness: 'server' }),
    attribute('name', 'The parts of the name', { subAttributes: NAME }),
    attribute('displayName', 'The display name'),
    attribute('nickName', 'The casual name'),
    attribute('profileUrl', 'URL of a page about the person', { type: 'reference', referenceTypes: ['external'] }),
    attribute('title', 'Position, such as Vice President'),
    attribute('userType', 'Relation to the organization, such as Contractor'),
    attribute('preferredLanguage', 'Language, as in Accept-Language'),
    attribute('locale', 'Locale, for formats of numbers and dates'),
    attribute('timezone', 'Time zone, such as Europe/Paris'),
    attribute('active', 'True for members of the organization; false removes the person at once', { type: 'boolean' }),
    attribute('password', 'Accepted and not stored: users do not sign in here', {
      mutability: 'writeOnly',
      returned: 'never',
      caseExact: true,
    }),
    plural('emails', 'E-mail addresses'),
    plural('phoneNumbers', 'Phone numbers'),
    plural('ims', 'Instant messaging addresses'),
    plural('photos', 'URLs of photos', { type: 'reference', referenceTypes: ['external'], caseExact: true }),
    attribute('addresses', 'Postal addresses', { multiValued: true, subAttributes: ADDRESS }),
    attribute('groups', 'Groups of the person', {
      ...READ_ONLY,
      multiValued: true,
      subAttributes: [
        attribute('value', 'Id of the group', { ...READ_ONLY, caseExact: true }),
        attribute('$ref', 'Its URL', { ...READ_ONLY, type: 'reference', referenceTypes: ['Group'] }),
        attribute('display', 'Its name', READ_ONLY),
        attribute('type', 'Always direct', READ_ONLY),
      ],
    }),
    plural('entitlements', 'Entitlements of the person'),
    plural('roles', 'Roles; stored only. Group mappings grant access'),
    plural('x509Certificates', 'Certificates', { type: 'binary', caseExact: true }),
  ],
};

const ENTERPRISE_SCHEMA: Schema = {
  id: ENTERPRISE,
  name: 'EnterpriseUser',
  description: 'Employment data of a person',
  attributes: [
    attribute('employeeNumber', 'Employee number'),
    attribute('costCenter', 'Cost center'),
    attribute('organization', 'Organization'),
    attribute('division', 'Division'),
    attribute('department', 'Department'),
    attribute('manager', "The person's manager", {
      subAttributes: [
        attribute('value', 'Id of the manager', { caseExact: true }),
        attribute('$ref', 'URL of the manager', { type: 'reference', referenceTypes: ['User'] }),
        attribute('displayName', 'Name of the manager'),
      ],
    }),
  ],
};

const GROUP_SCHEMA: Schema = {
  id: 'urn:ietf:params:scim:schemas:core:2.0:Group',
  name: 'Group',
  description: 'Groups of persons from an identity provider',
  attributes: [
    attribute('displayName', 'The name of the group', { required: true, uniqueness: 'server' }),
    attribute('members', 'Members of the group; persons, not groups', {
      multiValued: true,
      subAttributes: [
        attribute('value', 'Id of the person', { caseExact: true }),
        attribute('$ref', 'URL of the person', { type: 'reference', referenceTypes: ['User'] }),
        attribute('display', 'Name of the person', READ_ONLY),
        attribute('type', 'Always User'),
      ],
    }),
  ],
};

/** Attributes of every resource, which belong to no schema (RFC 7643, section 3.1). */
export const COMMON: readonly Attribute[] = [
  attribute('schemas', 'Schemas that the resource follows', { multiValued: true, required: true, returned: 'always' }),
  attribute('id', 'Id of the resource', { ...READ_ONLY, caseExact: true, returned: 'always', uniqueness: 'server' }),
  attribute('externalId', 'Id at the identity provider', { caseExact: true }),
  attribute('meta', 'Metadata of the resource', {
    ...READ_ONLY,
    subAttributes: [
      attribute('resourceType', 'User or Group', { ...READ_ONLY, caseExact: true }),
      attribute('created', 'Time of creation', { ...READ_ONLY, type: 'dateTime' }),
      attribute('lastModified', 'Time of the last change', { ...READ_ONLY, type: 'dateTime' }),
      attribute('location', 'Its URL', { ...READ_ONLY, type: 'reference', referenceTypes: ['uri'] }),
      attribute('version', 'Its version, as in ETag', { ...READ_ONLY, caseExact: true }),
    ],
  }),
];

export const USER: ResourceType = {
  name: 'User',
  endpoint: '/Users',
  description: 'Persons; the active ones are members of the organization',
  schema: USER_SCHEMA,
  extensions: [ENTERPRISE_SCHEMA],
};

export const GROUP: ResourceType = {
  name: 'Group',
  endpoint: '/Groups',
  description: 'Groups; mappings give their members roles in workspaces',
  schema: GROUP_SCHEMA,
  extensions: [],
};

export const SCHEMAS: readonly Schema[] = [USER_SCHEMA, ENTERPRISE_SCHEMA, GROUP_SCHEMA];

/** Path of an attribute. SCIM names are case-insensitive; here they are spelled as in the schemas. */
export interface AttributePath {
  /** Id of the extension that defines it; undefined for core attributes. */
  readonly extension: string | undefined;
  readonly attribute: Attribute;
  readonly sub: Attribute | undefined;
}

const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

export function named(attributes: readonly Attribute[], name: string): Attribute | undefined {
  return attributes.find((each) => same(each.name, name));
}

export function knownExtension(type: ResourceType, id: string): Schema | undefined {
  return type.extensions.find((each) => same(each.id, id));
}

/** Splits `urn:...:name` at its last colon; the prefix is undefined if there is none. */
export function splitPrefix(path: string): [prefix: string | undefined, rest: string] {
  const end = /^urn:/i.test(path) ? path.lastIndexOf(':') : -1;
  return end === -1 ? [undefined, path] : [path.slice(0, end), path.slice(end + 1)];
}

/**
 * Resolves `name` or `name.sub`, optionally after the id of a schema; undefined if no schema has it. A name without a
 * schema id also resolves to an extension's attribute if the core schema has none: Microsoft Entra sends `manager` this
 * way, in patches and in filters.
 */
export function attributePathOf(type: ResourceType, path: string): AttributePath | undefined {
  const found = corePathOf(type, path);
  if (found || splitPrefix(path)[0] !== undefined) return found;
  return type.extensions.map(({ id }) => corePathOf(type, `${id}:${path}`)).find((each) => each !== undefined);
}

function corePathOf(type: ResourceType, path: string): AttributePath | undefined {
  const [prefix, rest] = splitPrefix(path);
  const [name = '', subName, ...more] = rest.split('.');
  if (more.length > 0) return undefined;
  const extension = prefix === undefined || same(prefix, type.schema.id) ? undefined : knownExtension(type, prefix);
  if (prefix !== undefined && !same(prefix, type.schema.id) && !extension) return undefined;
  const attribute = named(extension ? extension.attributes : [...COMMON, ...type.schema.attributes], name);
  if (!attribute) return undefined;
  const sub = subName === undefined ? undefined : named(attribute.subAttributes ?? [], subName);
  return subName !== undefined && !sub ? undefined : { extension: extension?.id, attribute, sub };
}

/** Attributes of core schemas are at the top of a resource, never under the id of the schema. */
export function isCoreSchema(id: string): boolean {
  return /^urn:ietf:params:scim:schemas:core:/i.test(id);
}

export function isExtensionId(key: string): boolean {
  return /^urn:[\x21-\x7e]{1,200}$/i.test(key);
}
