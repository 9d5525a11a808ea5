import type { IncomingHttpHeaders } from 'node:http';
import type { EndUser } from '../bodies/end-user.js';

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
const MAX_TAGS = 8;
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

/** The tags of a filter, written as in the header. @returns null if one of them is malformed */
export function filteredTags(text: string): Record<string, string> | null {
  const tags = text.split(',').map((part) => TAG.exec(part.trim()));
  if (tags.length > MAX_TAGS || tags.includes(null)) return null;
  return Object.fromEntries(tags.map((tag) => [tag![1]!, tag![2]!]));
}

/** Tags that are malformed, and those after the eighth, are ignored. */
function tagsOf(header: string | null): string | null {
  const tags: Record<string, string> = {};
  let count = 0;
  for (const part of header?.split(',', 4 * MAX_TAGS) ?? []) {
    const [, name, value] = TAG.exec(part.trim()) ?? [];
    if (name === undefined || count === MAX_TAGS) continue;
    tags[name] = value!;
    count++;
  }
  return count === 0 ? null : JSON.stringify(tags);
}

/** Adds tags. They replace those of the same name; of the others, those after the eighth are dropped. */
export function withTags(known: Attribution | null, added: Readonly<Record<string, string>>): Attribution {
  const before = known?.tags == null ? {} : (JSON.parse(known.tags) as Record<string, string>);
  const others = Object.entries(before).filter(([name]) => !Object.hasOwn(added, name));
  const tags = Object.fromEntries([...Object.entries(added), ...others].slice(0, MAX_TAGS));
  return {
    endUser: known?.endUser ?? null,
    sessionId: known?.sessionId ?? null,
    tags: Object.keys(tags).length === 0 ? null : JSON.stringify(tags),
  };
}

/** Adds what the body names. What the headers name comes first. */
export function withBody(known: Attribution | null, { endUser, sessionId }: EndUser): Attribution | null {
  if (endUser === null && sessionId === null) return known;
  return {
    endUser: known?.endUser ?? endUser,
    sessionId: known?.sessionId ?? sessionId,
    tags: known?.tags ?? null,
  };
}
