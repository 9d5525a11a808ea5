import type { IncomingHttpHeaders } from 'node:http';
import { openObject, type ObjectCursor, parseText } from '../tokens/json-cursor.js';

/** Whom a call is for and what belongs to it, as the client says. It proves nothing. */
export interface Attribution {
  endUser: string | null;
  sessionId: string | null;
  /** A JSON object of strings. */
  tags: string | null;
}

/** Headers in which agents name their session, after ours. */
const SESSION_HEADERS = [
  'x-gateway-session',
  'x-claude-code-session-id',
  'session-id',
  'x-opencode-session',
  // opencode sends both with the same value, to providers whose name does not begin with `opencode`.
  'x-session-id',
  'x-session-affinity',
] as const;
const MOST_TAGS = 8;
const TAG = /^([\w.-]{1,64})=([^,]{1,64})$/;

/** @param userHeaders names of further headers, in lower case @returns null if the headers name nothing */
export function ofHeaders(headers: IncomingHttpHeaders, userHeaders: readonly string[]): Attribution | null {
  const endUser = first(headers, 'x-gateway-user') ?? firstOf(headers, userHeaders);
  const sessionId = firstOf(headers, SESSION_HEADERS);
  const tags = headers['x-gateway-tags'] === undefined ? null : tagsOf(first(headers, 'x-gateway-tags'));
  return endUser === null && sessionId === null && tags === null ? null : { endUser, sessionId, tags };
}

function firstOf(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const value = first(headers, name);
    if (value !== null) return value;
  }
  return null;
}

function first(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Tags that are malformed, and those after the eighth, are ignored. */
function tagsOf(header: string | null): string | null {
  const tags: Record<string, string> = {};
  let count = 0;
  for (const part of header?.split(',', 4 * MOST_TAGS) ?? []) {
    const [, name, value] = TAG.exec(part.trim()) ?? [];
    if (name === undefined || count === MOST_TAGS) continue;
    tags[name] = value!;
    count++;
  }
  return count === 0 ? null : JSON.stringify(tags);
}

/**
 * A member of a request that may name the end user or the session. Inside a string its quotes are escaped, and `"user"` as
 * a role has no colon behind it, so that few other requests match.
 */
const MEMBER = /"(?:safety_identifier|prompt_cache_key|metadata|user)"\s*:/;
/** A walk over the members of a body up to this size saves 6 % of a call on Node 20, in place of the search. */
const SMALL_BYTES = 2_048;
/** Claude Code before 2.1.78: the hash of a device, the UUID of the account if one is signed in, and the session. */
const CLAUDE_CODE_USER = /^user_([0-9a-f]{64})_account_([0-9a-f-]*)_session_([\w-]+)$/;

/**
 * Adds what a JSON request names in `safety_identifier`, `user`, `prompt_cache_key` and `metadata.user_id`, in this order.
 * The headers come first.
 */
export function withBody(known: Attribution | null, body: Buffer): Attribution | null {
  if (known !== null && known.endUser !== null && known.sessionId !== null) return known;
  if (body.length > SMALL_BYTES && !MEMBER.test(body.toString('latin1'))) return known;
  let identifier: string | null = null;
  let user: string | null = null;
  let metadata: string | null = null;
  let session: string | null = null;
  const cursor = openObject(body);
  while (cursor?.next()) {
    if (cursor.isKey('safety_identifier')) identifier = parseText(body, cursor.textSpan());
    else if (cursor.isKey('user')) user = parseText(body, cursor.textSpan());
    else if (cursor.isKey('prompt_cache_key')) session = parseText(body, cursor.textSpan());
    else if (cursor.isKey('metadata')) metadata = userIdOf(body, cursor.object());
  }
  const named = metadata === null ? null : ofUserId(metadata);
  const endUser = known?.endUser ?? identifier ?? user ?? named?.endUser ?? null;
  const sessionId = known?.sessionId ?? session ?? named?.sessionId ?? null;
  const tags = known?.tags ?? null;
  return endUser === null && sessionId === null && tags === null ? null : { endUser, sessionId, tags };
}

function userIdOf(body: Buffer, cursor: ObjectCursor | null): string | null {
  while (cursor?.next()) if (cursor.isKey('user_id')) return parseText(body, cursor.textSpan());
  return null;
}

/**
 * Claude Code puts the device, the account and the session into one `metadata.user_id`, as JSON or in its older form.
 * Its end user is the account, else the device, so that it stays the same from session to session.
 */
function ofUserId(userId: string): { endUser: string; sessionId: string | null } {
  const [, device, account, session] = CLAUDE_CODE_USER.exec(userId) ?? [];
  if (device !== undefined) return { endUser: account || device, sessionId: session! };
  const json = userId.startsWith('{') ? parseObject(userId) : {};
  const endUser = textOf(json.account_uuid) ?? textOf(json.device_id);
  return endUser === null
    ? { endUser: userId, sessionId: null }
    : { endUser, sessionId: textOf(json.session_id) };
}

function parseObject(json: string): Record<string, unknown> {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
