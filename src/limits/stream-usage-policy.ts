import { Injectable } from '@nestjs/common';
import type { Grant } from '../auth/caller.js';
import { GatewayError } from '../errors/gateway-error.js';
import { CallPolicies } from '../proxy/policies/call-policies.js';
import type { CallPolicy } from '../proxy/policies/call-policy.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';

/** Endpoints whose streams report their usage only if they are asked to. */
const COMPLETIONS = /\/(?:chat\/)?completions$/;
const INSERTED = Buffer.from('"stream_options":{"include_usage":true},');

/** Makes sure that the streams of a key report their usage. */
@Injectable()
export class StreamUsagePolicy implements CallPolicy {
  /** After the check of the model: what is inserted has no part in that. */
  readonly order = -99;

  constructor(policies: CallPolicies) {
    policies.register(this);
  }

  appliesTo(grant: Grant): boolean {
    return grant.streamUsage.length > 0;
  }

  needsBody(call: PolicyCall): boolean {
    return call.method === 'POST' && COMPLETIONS.test(call.endpoint);
  }

  /** @throws GatewayError usage_required */
  admit(call: PolicyCall): void {
    if (call.body === null || !this.needsBody(call)) return;
    const { streamUsage } = call.grant;
    const problem = call.notJson ?? call.members.problem;
    if (problem !== null) {
      if (streamUsage.includes('require')) reject(`Whether it does cannot be read: ${problem}.`);
      return;
    }
    if (!isStream(call)) return;
    const options = call.members.all('stream_options');
    if (options.length === 0 && streamUsage.includes('ask')) {
      const at = call.body.indexOf('{') + 1;
      const parts = [call.body.subarray(0, at), INSERTED, call.body.subarray(at)];
      call.replaceBody(Buffer.concat(parts), 'stream_usage');
    } else if (streamUsage.includes('require') && !isAskedFor(call)) {
      reject('Add "stream_options": {"include_usage": true} to the request.');
    }
  }
}

function isStream({ members }: PolicyCall): boolean {
  const values = members.all('stream').map((span) => members.parse(span));
  return values.some((value) => value !== false && value !== null);
}

function isAskedFor({ members }: PolicyCall): boolean {
  const [span, ...others] = members.all('stream_options');
  if (span === undefined || others.length > 0) return false;
  const options = members.parse(span) as { include_usage?: unknown } | null | undefined;
  return options?.include_usage === true;
}

function reject(remedy: string): never {
  throw new GatewayError('usage_required', {
    message: `Streams of this gateway key must report their usage. ${remedy}`,
  });
}
