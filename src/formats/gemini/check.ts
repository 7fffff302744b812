/** Rules of a client's request that the schema cannot express. */
import { invalidField } from '../../base/errors.ts';
import { fieldsOf } from '../conversation/fields.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import { checkMetadata, checkModels } from '../conversation/request-rules.ts';
import { refuseUnbuilt } from '../server-tools/index.ts';
import { decode } from './decode.ts';
import { member, refuseTwins } from './names.ts';

const UNBUILT = ['deferred_tools'];

/** @throws GatewayError 400 with the path of the offending field */
export function check(body: unknown): void {
  const request = fieldsOf(body);
  refuseTwins(request, '');
  refuseUnbuilt(request, { unbuilt: UNBUILT });
  checkPreferences(request['provider']);
  checkModels(request);
  checkMetadata(request);
  // It belongs to an account at Google, which the gateway's clients do not share.
  if (member(request, 'cachedContent') !== undefined) {
    throw invalidField('cachedContent', 'is not supported: providers cache prefixes without it');
  }
  decode(request);
}
