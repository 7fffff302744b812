/** The fields of a destination's config, from the schema of its type. Secrets are never shown: an empty field keeps them. */
import { Button } from '../ui/basics.tsx';
import { Choice, Text } from '../ui/forms.tsx';

/** One header; `mask` if the gateway has a value for it. */
interface Header {
  name: string;
  value: string;
  mask?: string;
}

export interface ConfigFields {
  members: Readonly<Record<string, string>>;
  headers: readonly Header[];
}

type Config = Readonly<Record<string, unknown>>;

const isSecret = ({ format }: ConfigMember) => format === 'password';

function membersOf(type: string): [string, ConfigMember][] {
  return Object.entries(DESTINATION_TYPES[type]?.properties ?? {}).filter(([name]) => name !== 'headers');
}

/** The fields for a config as the gateway shows it; empty for a new one. */
export function fieldsOf(type: string, config: Config = {}): ConfigFields {
  const shown = membersOf(type).flatMap(([name, member]) => {
    const value = config[name] ?? (isSecret(member) ? undefined : member.enum && member.default);
    return typeof value !== 'string' || isSecret(member) ? [] : [[name, value]];
  });
  const headers = Object.entries((config['headers'] ?? {}) as Record<string, string>);
  return {
    members: Object.fromEntries(shown),
    headers: headers.map(([name, mask]) => ({ name, value: '', mask })),
  };
}

/**
 * The config that the fields say. The gateway keeps what is left out, and headers whose mask is sent.
 * @param shown the config as the gateway shows it: if the field of one of its members is now empty, its default counts
 */
export function configOf(type: string, { members, headers }: ConfigFields, shown: Config = {}): Config {
  const given = Object.entries(members).filter(([, value]) => value.trim() !== '');
  const emptied = Object.entries(members).filter(([name, value]) => value.trim() === '' && name in shown);
  const named = headers.filter(({ name }) => name.trim() !== '');
  return {
    ...Object.fromEntries(emptied.map(([name]) => [name, DESTINATION_TYPES[type]?.properties[name]?.default ?? null])),
    ...Object.fromEntries(given.map(([name, value]) => [name, value.trim()])),
    headers: Object.fromEntries(named.map(({ name, value, mask }) => [name.trim(), value || (mask ?? '')])),
  };
}

const UPPER = /^(?:api|url|dsn|ml|otlp|id)$/;

/** `apiKey`: API key */
export function memberLabel(name: string): string {
  const words = name
    .replaceAll(/[A-Z]/g, ' $&')
    .toLowerCase()
    .split(' ')
    .map((word) => (UPPER.test(word) ? word.toUpperCase() : word));
  return words.join(' ').replace(/^./, (first) => first.toUpperCase());
}

interface ConfigFormProps {
  type: string;
  fields: ConfigFields;
  /** As the gateway shows it; absent for a new destination. */
  config?: Config | undefined;
  onFields(fields: ConfigFields): void;
}

export function ConfigForm({ type, fields, config, onFields }: ConfigFormProps) {
  const required = DESTINATION_TYPES[type]?.required ?? [];
  return (
    <>
      <div class="form-row">
        {membersOf(type).map(([name, member]) => (
          <Member
            key={name}
            name={name}
            member={member}
            required={required.includes(name)}
            value={fields.members[name] ?? ''}
            kept={isSecret(member) ? (config?.[name] as string | undefined) : undefined}
            onValue={(value) => onFields({ ...fields, members: { ...fields.members, [name]: value } })}
          />
        ))}
      </div>
      <Headers headers={fields.headers} onHeaders={(headers) => onFields({ ...fields, headers })} />
    </>
  );
}

interface MemberProps {
  name: string;
  member: ConfigMember;
  required: boolean;
  value: string;
  /** The mask of the secret that the gateway has. */
  kept: string | undefined;
  onValue(value: string): void;
}

function Member({ name, member, required, value, kept, onValue }: MemberProps) {
  const label = memberLabel(name);
  const path = `config.${name}`;
  if (member.enum !== undefined) {
    return (
      <Choice
        label={label}
        member={path}
        value={value}
        options={member.enum.map((each) => [each, each])}
        onChange={onValue}
      />
    );
  }
  const hint = kept === undefined ? member.description : `Empty: keep ${kept}`;
  return (
    <Text
      label={label}
      member={path}
      type={isSecret(member) ? 'password' : 'text'}
      code={member.format === 'uri'}
      required={required && kept === undefined}
      value={value}
      onInput={onValue}
      {...(member.default !== undefined && { placeholder: member.default })}
      {...(hint !== undefined && { hint })}
    />
  );
}

function Headers({ headers, onHeaders }: { headers: readonly Header[]; onHeaders(headers: readonly Header[]): void }) {
  const change = (at: number, changes: Partial<Header>) =>
    onHeaders(headers.map((header, place) => (place === at ? { ...header, ...changes } : header)));
  return (
    <fieldset class="rows">
      <legend>Headers of each request</legend>
      {headers.map(({ name, value, mask }, at) => (
        <div key={at} class="row">
          <Text label={`Name of header ${at + 1}`} code value={name} onInput={(next) => change(at, { name: next })} />
          <Text
            label={`Value of header ${at + 1}`}
            {...(name !== '' && { member: `config.headers.${name}` })}
            type="password"
            value={value}
            onInput={(next) => change(at, { value: next })}
            required={mask === undefined}
            {...(mask !== undefined && { placeholder: `keep ${mask}` })}
          />
          <Button
            kind="quiet"
            icon="trash"
            label={`Remove header ${at + 1}`}
            onClick={() => onHeaders(headers.filter((_, place) => place !== at))}
          />
        </div>
      ))}
      <Button kind="quiet" icon="plus" onClick={() => onHeaders([...headers, { name: '', value: '' }])}>
        Add a header
      </Button>
    </fieldset>
  );
}
