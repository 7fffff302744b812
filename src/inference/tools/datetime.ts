/** `svc:datetime`: the current date and time. */
import { invalidField } from '../../base/errors.ts';
import { textOf, textOrUndefined } from '../../formats/conversation/fields.ts';
import { type ServerTool, ToolError } from './tool.ts';

const LONGEST_NAME = 64;

export const datetime: ServerTool = {
  name: 'svc:datetime',
  check({ timezone }, path) {
    if (timezone === undefined || timezone === null) return;
    if (!isTimezone(timezone)) throw invalidField(`${path}.timezone`, 'must be the IANA name of a time zone');
  },
  begin(settings) {
    const usual = textOrUndefined(settings['timezone']) ?? 'UTC';
    return {
      functionName: 'datetime',
      description: 'Returns the current date and time.',
      parameters: {
        type: 'object',
        properties: {
          timezone: {
            type: 'string',
            description: `IANA name of a time zone, such as Europe/Berlin. Default ${usual}`,
          },
        },
        additionalProperties: false,
      },
      run(input, { parts }) {
        const timezone = textOf(input['timezone']) || usual;
        if (!isTimezone(timezone)) throw new ToolError(`${timezone} is not the IANA name of a time zone`);
        const item = { datetime: timeIn(timezone, parts.clock.now()), timezone };
        return { result: JSON.stringify(item), item };
      },
    };
  },
};

function isTimezone(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) return false;
  try {
    timeIn(name, 0);
    return true;
  } catch {
    return false;
  }
}

/** ISO 8601 with the offset of the time zone. */
function timeIn(timezone: string, now: number): string {
  const time = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone);
  return time.toString({ smallestUnit: 'second', timeZoneName: 'never' });
}
