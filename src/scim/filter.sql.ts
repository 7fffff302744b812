/**
 * SCIM filters and sort orders as SQL, and pages of results. Text from requests only reaches the server as parameters.
 */
import type { Queryable } from '../storage/database.ts';
import type { Attribute, AttributePath } from './protocol/attributes.ts';
import type { Comparison, Condition, Test } from './protocol/condition.ts';
import { refusal } from './protocol/fault.ts';

/** Columns of a resource's attributes. All SQL here is fixed text. */
export interface FilterColumns {
  /** Single attributes with their own expression, by name or `name.sub`. */
  readonly single: Readonly<Record<string, string>>;
  /** Lists stored as rows of another table: the SQL after `from`, and the attributes of a row. */
  readonly lists: Readonly<Record<string, { from: string; where: string; single: Readonly<Record<string, string>> }>>;
  /** The jsonb column with all other attributes. */
  readonly json: string;
}

/** Table of the resources of one type. All SQL here is fixed text, and uses the alias of `columns`. */
export interface Table {
  /** `scim_users u`. */
  readonly from: string;
  /** The SQL after `select`. */
  readonly fields: string;
  readonly organization: string;
  readonly oldestFirst: string;
  readonly columns: FilterColumns;
}

export interface ListQuery {
  condition: Condition | undefined;
  order: { by: AttributePath; descending: boolean } | undefined;
  offset: number;
  limit: number;
}

/** Oldest first unless ordered otherwise. */
export function listRows<Row extends object>(
  db: Queryable,
  table: Table,
  organizationId: string,
  { condition, order, offset, limit }: ListQuery,
): Promise<Row[]> {
  const { parameters, where } = chosen(table, organizationId, condition);
  // Resources without a value come last, and first in descending order (RFC 7644, section 3.4.2.3).
  const direction = order?.descending ? 'desc nulls first' : 'asc nulls last';
  const by = order ? `${orderSql(order.by, table.columns)} ${direction}, ` : '';
  const slice = `limit $${parameters.push(limit)} offset $${parameters.push(offset)}`;
  const sql = `select ${table.fields} from ${table.from} where ${where} order by ${by}${table.oldestFirst} ${slice}`;
  return db.query<Row>(sql, parameters);
}

export async function countRows(
  db: Queryable,
  table: Table,
  organizationId: string,
  condition: Condition | undefined,
): Promise<number> {
  const { parameters, where } = chosen(table, organizationId, condition);
  const sql = `select count(*)::int as count from ${table.from} where ${where}`;
  const [row] = await db.query<{ count: number }>(sql, parameters);
  return row?.count ?? 0;
}

function chosen({ organization, columns }: Table, organizationId: string, condition: Condition | undefined) {
  const parameters: unknown[] = [organizationId];
  const filter = condition ? ` and ${conditionSql(condition, columns, parameters)}` : '';
  return { parameters, where: `${organization} = $1${filter}` };
}

/**
 * SQL that is true or false, never null. Appends to `parameters`. Throws 400 invalidFilter for attributes that are not
 * stored.
 */
function conditionSql(condition: Condition, columns: FilterColumns, parameters: unknown[]): string {
  switch (condition.op) {
    case 'and':
    case 'or': {
      const parts = condition.parts.map((part) => conditionSql(part, columns, parameters));
      return `(${parts.join(` ${condition.op} `)})`;
    }
    case 'not':
      return `not (${conditionSql(condition.part, columns, parameters)})`;
    case 'item': {
      const { from, where, item } = listOf(condition.attributePath, columns);
      return `exists (select 1 from ${from} where ${where} and ${conditionSql(condition.part, item, parameters)})`;
    }
    case 'test': {
      const { attributePath, test } = condition;
      const attribute = attributePath.sub ?? attributePath.attribute;
      if (!attributePath.attribute.multiValued || nameOf(attributePath) in columns.single) {
        return testSql(singleOf(attributePath, columns), attribute, test, parameters);
      }
      const { from, where, item } = listOf(attributePath, columns);
      // A filter on whole items only tests whether there is one.
      const value = attributePath.sub
        ? singleOf({ ...attributePath, attribute: attributePath.sub, sub: undefined }, item)
        : 'true';
      return anySql(`from ${from} where ${where} and ${value} is not null`, value, attribute, test, parameters);
    }
  }
}

/** The SQL after `order by`, without direction. */
function orderSql(attributePath: AttributePath, columns: FilterColumns): string {
  const attribute = attributePath.sub ?? attributePath.attribute;
  const list = attributePath.attribute.multiValued && !(nameOf(attributePath) in columns.single);
  const value = list ? listValueSql(attributePath, columns) : singleOf(attributePath, columns);
  if (attribute.type === 'dateTime' || attribute.type === 'boolean') return value;
  return `${attribute.caseExact ? value : `lower(${value})`} collate "C"`;
}

/** Lists are sorted by their primary item, or else by the first one. */
function listValueSql({ attribute, sub, extension }: AttributePath, { lists, json }: FilterColumns): string {
  // All lists of objects have sub-attributes, and a complex attribute is sorted by one of them.
  if (attribute.name in lists || sub === undefined)
    throw refusal('invalidValue', `${nameOf({ attribute, sub, extension })} cannot be sorted by`);
  const items = `${json}${step(extension)}->'${attribute.name}'`;
  const primary = `jsonb_path_query_first(${items}, '$[*] ? (@.primary == true)')`;
  return `(coalesce(${primary}, ${items}->0)->>'${sub.name}')`;
}

function nameOf({ attribute, sub }: AttributePath): string {
  return sub ? `${attribute.name}.${sub.name}` : attribute.name;
}

const step = (extension: string | undefined) => (extension === undefined ? '' : `->'${extension}'`);

function singleOf(attributePath: AttributePath, columns: FilterColumns): string {
  const name = nameOf(attributePath);
  const own = attributePath.extension === undefined || columns.json === '' ? columns.single[name] : undefined;
  if (own !== undefined) return own;
  if (columns.json === '' || attributePath.attribute.mutability === 'readOnly') {
    throw refusal('invalidFilter', `${name} cannot be used in a filter`);
  }
  const scope = `${columns.json}${step(attributePath.extension)}`;
  return attributePath.sub
    ? `(${scope}->'${attributePath.attribute.name}'->>'${attributePath.sub.name}')`
    : `(${scope}->>'${attributePath.attribute.name}')`;
}

function listOf({ attribute, extension }: AttributePath, columns: FilterColumns) {
  const list = columns.lists[attribute.name];
  if (list) return { from: list.from, where: list.where, item: { single: list.single, lists: {}, json: '' } };
  const items = `coalesce(${columns.json}${step(extension)}->'${attribute.name}', '[]')`;
  // The attributes of an item belong to the item, whatever schema the list is from.
  const single = Object.fromEntries((attribute.subAttributes ?? []).map(({ name }) => [name, `(item->>'${name}')`]));
  return { from: `jsonb_array_elements(${items}) as item`, where: 'true', item: { single, lists: {}, json: '' } };
}

function testSql(value: string, attribute: Attribute, test: Test, parameters: unknown[]): string {
  if (test.op === 'present') return `${value} is not null`;
  if (test.value === null) return `${value} is ${test.operator === 'eq' ? '' : 'not '}null`;
  // An attribute without a value satisfies `ne`.
  return `coalesce(${comparisonSql(value, attribute, test, parameters)}, ${test.operator === 'ne'})`;
}

/** @param rows SQL for the rows of a list that have a value */
function anySql(rows: string, value: string, attribute: Attribute, test: Test, parameters: unknown[]): string {
  const some = `exists (select 1 ${rows})`;
  if (test.op === 'present') return some;
  if (test.value === null) return test.operator === 'eq' ? `not ${some}` : some;
  const match = `exists (select 1 ${rows} and ${comparisonSql(value, attribute, test, parameters)})`;
  return test.operator === 'ne' ? `(not ${some} or ${match})` : match;
}

const SYMBOLS = { eq: '=', ne: '<>', gt: '>', ge: '>=', lt: '<', le: '<=' } as const;

function comparisonSql(value: string, attribute: Attribute, test: Comparison, parameters: unknown[]): string {
  const { operator } = test;
  const number = parameters.push(String(test.value));
  if (attribute.type === 'dateTime') return `${value} ${SYMBOLS[operator as 'eq']} $${number}::timestamptz`;
  if (attribute.type === 'boolean') return `${value}::text ${SYMBOLS[operator as 'eq']} $${number}`;
  const [a, b] = attribute.caseExact ? [value, `$${number}::text`] : [`lower(${value})`, `lower($${number}::text)`];
  switch (operator) {
    case 'co':
      return `strpos(${a}, ${b}) > 0`;
    case 'sw':
      return `starts_with(${a}, ${b})`;
    case 'ew':
      return `right(${a}, length(${b})) = ${b}`;
    case 'eq':
    case 'ne':
      return `${a} ${SYMBOLS[operator]} ${b}`;
    default:
      return `${a} collate "C" ${SYMBOLS[operator]} ${b}`;
  }
}
