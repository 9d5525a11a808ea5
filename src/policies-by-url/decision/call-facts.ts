import { createHash } from 'node:crypto';
import { GatewayError } from '../../errors/gateway-error.js';
import type { PolicyCall } from '../../proxy/policies/policy-call.js';
import { POLICY_CALL_TOO_LONG } from './errors.js';
import type { Question, Rule } from './rule.js';

/** Below what servers accept of one header, 8 KiB for nginx. */
const MAX_HEADER = 7_168;
/** A gateway key, refresh token or device code: a client may send one as anything. */
const SECRET = /(pt[nrd]_)[0-9A-Za-z]{38}/g;

/** What a policy is told of a call. IDs stay when a team or a key gets another name. */
export interface CallFacts {
  request_id: string;
  team_id: string | null;
  key_id: string | null;
  end_user: string | null;
  /** Null unless it is certain that the provider reads the same one. */
  model: string | null;
  method: string;
  /** Path after `/p/<provider>`, without the query. */
  endpoint: string;
  /** Null if it is not known before the body is streamed. */
  body_bytes: number | null;
  tags: Record<string, string>;
}

export function factsOf(call: PolicyCall): CallFacts {
  const { attribution } = call;
  return {
    request_id: call.id,
    team_id: call.grant.teamId,
    key_id: call.grant.keyId,
    end_user: attribution?.endUser ?? null,
    model: call.model,
    method: call.method,
    endpoint: call.endpoint,
    body_bytes: call.requestBytes,
    tags: attribution?.tags == null ? {} : (JSON.parse(attribution.tags) as Record<string, string>),
  };
}

/** The value of `x-postern-call`: base64url of JSON. @throws GatewayError policy_call_too_long */
export function callHeader(facts: CallFacts): string {
  const header = Buffer.from(JSON.stringify(facts).replace(SECRET, '$1…')).toString('base64url');
  if (header.length > MAX_HEADER) throw new GatewayError(POLICY_CALL_TOO_LONG);
  return header;
}

/** Calls with the same digest get the same decision. @param sent the body that the policy gets, and what its bytes are */
export function digestOf(
  { revision }: Rule,
  facts: CallFacts,
  { body, headers }: Pick<Question, 'body' | 'headers'>,
): string {
  const { team_id, key_id, end_user, model, method, endpoint, tags } = facts;
  const text = JSON.stringify([revision, team_id, key_id, end_user, model, method, endpoint, tags, headers]);
  const hash = createHash('sha256').update(text);
  if (body !== null) hash.update(body);
  return hash.digest('base64');
}
