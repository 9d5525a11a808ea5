import type { Grant } from '../auth/caller.js';
import { GatewayError } from '../errors/gateway-error.js';
import { CallPolicy } from '../proxy/policies/call-policy.js';
import type { Provider } from '../providers/provider.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';

/** Endpoints whose streams report their usage only if they are asked to. */
const COMPLETIONS = /\/(?:chat\/)?completions$/;
const INSERTED = Buffer.from('"stream_options":{"include_usage":true},');
/**
 * Mistral and Cohere reject a request with `stream_options` with 422. Mistral's streams always report their usage; of
 * Cohere's compatibility API it is not documented. By host: a server of other software may have Mistral's price list.
 */
const MISTRAL = /\/\/(?:api|codestral)\.mistral\.ai(?::\d+)?$/;
const COHERE = /\/\/api\.cohere\.(?:ai|com)(?::\d+)?$/;

const ADD = 'Add "stream_options": {"include_usage": true} to the request.';
const USE_CHAT = 'Cohere does not accept "stream_options" here. Use its endpoint /v2/chat.';

/** Makes sure that the streams of a key report their usage. */
@CallPolicy()
export class StreamUsagePolicy implements CallPolicy {
  /** After the check of the model: what is inserted has no part in that. */
  readonly order = -99;

  appliesTo(grant: Grant): boolean {
    return grant.streamUsage.length > 0;
  }

  needsBody(call: PolicyCall): boolean {
    return call.method === 'POST' && COMPLETIONS.test(call.endpoint) && !call.providers.every(isMistral);
  }

  /** @throws GatewayError usage_required */
  admit(call: PolicyCall): void {
    const { body } = call;
    if (body === null || !this.needsBody(call)) return;
    const { streamUsage } = call.grant;
    const isRequired = streamUsage.includes('require');
    const problem = call.notJson ?? call.members.problem;
    if (problem !== null) {
      if (isRequired) reject(`Whether it does cannot be read: ${problem}.`);
      return;
    }
    if (!isStream(call)) return;
    const isAdded = call.members.all('stream_options').length === 0 && streamUsage.includes('ask');
    const isForCohere = call.providers.some(isCohere);
    if (isRequired && (isAdded ? isForCohere : !isAskedFor(call))) reject(isForCohere ? USE_CHAT : ADD);
    if (!isAdded || !call.providers.some(acceptsOption)) return;
    const at = body.indexOf('{') + 1;
    const bytes = Buffer.concat([body.subarray(0, at), INSERTED, body.subarray(at)]);
    call.replaceBody(bytes, 'stream_usage', acceptsOption);
  }
}

const isMistral = ({ origin }: Provider): boolean => MISTRAL.test(origin);
const isCohere = ({ origin }: Provider): boolean => COHERE.test(origin);
const acceptsOption = (provider: Provider): boolean => !isMistral(provider) && !isCohere(provider);

function isStream({ members }: PolicyCall): boolean {
  return members.all('stream').some(({ value }) => value !== false && value !== null);
}

function isAskedFor({ members }: PolicyCall): boolean {
  const [member, ...others] = members.all('stream_options');
  if (member === undefined || others.length > 0) return false;
  return (member.value as { include_usage?: unknown } | null | undefined)?.include_usage === true;
}

function reject(remedy: string): never {
  throw new GatewayError('usage_required', {
    message: `Streams of this gateway key must report their usage. ${remedy}`,
  });
}
